package verbsbench

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// A Scheme is the way in which a root takes long messages from many senders
// over one shared receive queue.
type Scheme string

const (
	// Copy lets all send at once, into any of the receives that the root has
	// posted; from there the root copies each message to its place.
	Copy Scheme = "copy"
	// ZeroCopy has each message placed where it belongs. Nobody can tell whose
	// message takes the next receive of a shared queue, so there is one receive
	// at a time: a sender asks (RTS), the root posts the receive and allows
	// (RTR), and then it is the next one's turn.
	ZeroCopy Scheme = "zero-copy"
)

// GatherOptions say who sends how much to the root. All are required.
type GatherOptions struct {
	Scheme  Scheme
	Senders int
	Size    int // bytes that each sends, at least 8
}

// A Gather is a root and its senders, a process each. For one goroutine.
type Gather struct{ g *proc.Group }

const (
	roleRoot   = "root"
	roleSender = "sender"
)

// OpenGather starts the processes. The caller closes the session.
func OpenGather(ctx context.Context, o GatherOptions) (*Gather, error) {
	if o.Scheme != Copy && o.Scheme != ZeroCopy || o.Senders < 1 || o.Size < stampLen {
		return nil, fmt.Errorf("verbsbench: no gathering by %+v", o)
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

// Round gathers iters times and returns how long each took the root: from its
// word to begin until every message is in its place.
func (g *Gather) Round(ctx context.Context, iters int) (*measure.Latency, error) {
	all, err := proc.Call[int, *measure.Latency](ctx, g.g, iters)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// LatencyRounds is Round as measure.Alternate takes it; the figure is the median in
// microseconds. All that is measured is added to into, unless that is nil.
func (g *Gather) LatencyRounds(iters int, into *measure.Latency) measure.Round {
	return medianRound(g.Round, iters, into)
}

// Close ends all processes. Closing twice is safe.
func (g *Gather) Close() { g.g.Close() }
