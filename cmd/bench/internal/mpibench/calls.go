package mpibench

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi"
)

// A Program is a loop of communication calls.
type Program string

// Programs. Stream is of two ranks.
const (
	Barriers  Program = "barrier"
	Alltoalls Program = "alltoall"
	Ring      Program = "ring"   // a call is a message from each rank to the next, one after the other
	Stream    Program = "stream" // a call is streamWindow messages, and a reply
)

const streamWindow = 64

// Calls are a number of calls of a program, in a loop without anything between them.
type Calls struct {
	Program Program
	Size    int // bytes of a message, or of the block for each other rank
	Calls   int
}

// CallTimes are the times of a call.
type CallTimes struct {
	Elapsed   time.Duration // at the slowest rank
	Processor time.Duration // processor time of all ranks
}

// warmUpCalls make the connections.
const warmUpCalls = 3

// Run runs the calls on a rank after a few others and a barrier, and returns the times of all calls
// of the rank. It also runs on a simulated host, where it uses no processor time.
func (c Calls) Run(w mpi.World) (t CallTimes, err error) {
	call, err := c.prepare(w)
	if err != nil {
		return t, err
	}
	for range warmUpCalls {
		if err := call(); err != nil {
			return t, err
		}
	}
	if err := w.Barrier(); err != nil {
		return t, err
	}
	used, began := measure.ProcessorTime(), vtime.Now()
	for range c.Calls {
		if err := call(); err != nil {
			return t, err
		}
	}
	return CallTimes{vtime.Since(began), measure.ProcessorTime() - used}, nil
}

func (c Calls) prepare(w mpi.World) (call func() error, err error) {
	buffer := func(n int) mpi.Buffer { return mpi.Bytes(make([]byte, n)) }
	switch c.Program {
	case Barriers:
		return w.Barrier, nil
	case Alltoalls:
		send, recv := buffer(w.Size()*c.Size), buffer(w.Size()*c.Size)
		return func() error { return w.Alltoall(send, recv) }, nil
	case Ring:
		return passMessage(w, buffer(c.Size)), nil
	case Stream:
		return streamMessages(w, buffer(c.Size)), nil
	}
	return nil, fmt.Errorf("mpibench: unknown program %q", c.Program)
}

// passMessage returns a call in which each rank sends a message to the next, rank 0 first, and the
// others when they have received theirs.
func passMessage(w mpi.World, message mpi.Buffer) func() error {
	before, next := (w.Rank()+w.Size()-1)%w.Size(), (w.Rank()+1)%w.Size()
	return func() error {
		if w.Rank() == 0 {
			if err := w.Send(message, next, 0); err != nil {
				return err
			}
		}
		if _, err := w.Recv(message, before, 0); err != nil {
			return err
		}
		if w.Rank() > 0 {
			return w.Send(message, next, 0)
		}
		return nil
	}
}

// streamMessages returns a call in which rank 0 sends messages at once and rank 1 replies.
func streamMessages(w mpi.World, message mpi.Buffer) func() error {
	requests := make([]*mpi.Request, streamWindow)
	return func() error {
		if w.Rank() > 0 {
			for i := range requests {
				var err error
				if requests[i], err = w.Irecv(message, 0, 0); err != nil {
					return err
				}
			}
			if _, err := mpi.WaitAll(requests...); err != nil {
				return err
			}
			return w.Send(message, 0, 1)
		}
		for i := range requests {
			var err error
			if requests[i], err = w.Isend(message, 1, 0); err != nil {
				return err
			}
		}
		if _, err := mpi.WaitAll(requests...); err != nil {
			return err
		}
		_, err := w.Recv(message, 1, 1)
		return err
	}
}

// CallTimes runs calls and returns the times of one.
func (j *Job) CallTimes(ctx context.Context, c Calls) (t CallTimes, err error) {
	ranks, err := proc.Call[request, reply](ctx, j.Group, request{Calls: &c})
	if err != nil {
		return t, fmt.Errorf("%s: %w", j.Transport, err)
	}
	for _, r := range ranks {
		t.Elapsed = max(t.Elapsed, r.Calls.Elapsed)
		t.Processor += r.Calls.Processor
	}
	return CallTimes{t.Elapsed / time.Duration(c.Calls), t.Processor / time.Duration(c.Calls)}, nil
}
