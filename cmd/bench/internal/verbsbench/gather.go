package verbsbench

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// A Scheme is the way in which a root receives long messages of many senders over one shared
// receive queue.
type Scheme string

const (
	// Copy lets all senders send at once, into any of the posted receives. The root copies each
	// message to its destination.
	Copy Scheme = "copy"
	// ZeroCopy places each message directly at its destination. The next receive of a shared
	// queue may match any sender, so there is only one receive at a time: a sender requests to
	// send (RTS), the root posts the receive and grants it (RTR), and then serves the next
	// sender.
	ZeroCopy Scheme = "zero-copy"
)

// GatherOptions are the options of OpenGather. All are required.
type GatherOptions struct {
	Scheme  Scheme
	Senders int
	Size    int // bytes of a message, at least 8
}

// A Gather is a root and its senders, each a process. It is used by one goroutine only.
type Gather struct{ *proc.Group }

const (
	roleRoot   = "root"
	roleSender = "sender"
)

// OpenGather starts the processes. The caller must close the session.
func OpenGather(ctx context.Context, o GatherOptions) (*Gather, error) {
	if o.Scheme != Copy && o.Scheme != ZeroCopy || o.Senders < 1 || o.Size < stampLen {
		return nil, fmt.Errorf("verbsbench: invalid gather options %+v", o)
	}
	specs := []proc.Spec{{Name: worker, Role: roleRoot, Args: o}}
	for range o.Senders {
		specs = append(specs, proc.Spec{Name: worker, Role: roleSender, Args: o})
	}
	g, err := proc.Start(ctx, proc.Options{Pin: true}, specs...)
	if err != nil {
		return nil, err
	}
	return &Gather{g}, nil
}

// LatencyRounds returns rounds of iters gathers for measure.Alternate. The figure is the median
// in microseconds of the time at the root, from the start message until every message is at its
// destination. All times are added to into, unless it is nil.
func (g *Gather) LatencyRounds(iters int, into *measure.Latency) measure.Round {
	return measure.MedianRounds(into, func(ctx context.Context) (*measure.Latency, error) {
		return proc.CallFirst[int, *measure.Latency](ctx, g.Group, iters)
	})
}
