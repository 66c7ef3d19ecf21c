package neighbor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/internal/plain"
)

// noRank stands for no neighbor in the lists of ranks of Open.
const noRank = -1

// Exchange is this rank's end of the channels to and from its neighbors. It must not be used concurrently.
type Exchange[T any] struct {
	p      *acp.Process
	out    []*acp.Chan[T] // by index of Open's to, or nil
	in     []*acp.Chan[T] // by index of Open's from, or nil
	failed error          // the first failure
}

// Open creates the channels to the ranks to, and from the ranks from, in which a rank may occur several times.
// The nth channel of rank a to rank b is the nth of b from a. -1 is no rank: nothing is sent there or received.
// Open does not wait for the neighbors, which connect with the first message. All ranks must use the same
// ChannelOptions.SlotSize and Imm.
//
// T must not contain pointers, slices, strings, maps, channels, functions or interfaces. Values are sent as
// they are in memory.
//
// Ranks out of range are refused before a channel is created. If Open fails later, for lack of memory or of
// receives, it frees the channels that it has created. The neighbors, if their Open has succeeded, must call
// Close, which waits for the channels that are missing until its context ends.
func Open[T any](p *acp.Process, to, from []int, o acp.ChannelOptions) (*Exchange[T], error) {
	x := &Exchange[T]{p: p, out: make([]*acp.Chan[T], len(to)), in: make([]*acp.Chan[T], len(from))}
	if err := x.checkRanks(to, from); err != nil {
		return nil, x.newError("open", err)
	}
	next := 0 // index of to after the last channel of this rank to itself
	// Both ends of a pair of opposite channels are created together, so that neighbors whose Open fails for
	// the same cause have created the same channels.
	for i := range max(len(to), len(from)) {
		var err error
		if i < len(from) && from[i] != noRank {
			x.in[i], err = acp.NewChan[T](p, from[i], p.Rank(), o)
			if err == nil && from[i] == p.Rank() {
				// The sending end of a channel from a rank to itself is the one created next.
				next += slices.Index(to[next:], p.Rank()) + 1
				x.out[next-1], err = acp.NewChan[T](p, p.Rank(), p.Rank(), o)
			}
		}
		if err == nil && i < len(to) && to[i] != noRank && to[i] != p.Rank() {
			x.out[i], err = acp.NewChan[T](p, p.Rank(), to[i], o)
		}
		if err != nil {
			for c := range x.channels() {
				c.Channel().Free()
			}
			return nil, err
		}
	}
	return x, nil
}

// checkRanks validates the arguments of Open.
func (x *Exchange[T]) checkRanks(to, from []int) error {
	if x.p.Rank() < 0 {
		return acp.ErrNull
	}
	toSelf := 0 // the number of channels to this rank without those from it
	for _, rank := range slices.Concat(to, from) {
		if rank != noRank && (rank < 0 || rank >= x.p.Size()) {
			return fmt.Errorf("%w: rank %d, want ranks below %d", acp.ErrRank, rank, x.p.Size())
		}
	}
	for _, rank := range to {
		if rank == x.p.Rank() {
			toSelf++
		}
	}
	for _, rank := range from {
		if rank == x.p.Rank() {
			toSelf--
		}
	}
	switch {
	case toSelf < 0:
		return fmt.Errorf("%w: fewer channels to this rank than from it", acp.ErrOptions)
	case toSelf > 0:
		return fmt.Errorf("%w: more channels to this rank than from it", acp.ErrOptions)
	}
	return nil
}

// channels returns an iterator over the channels, those to neighbors first.
func (x *Exchange[T]) channels() iter.Seq[*acp.Chan[T]] {
	return func(yield func(*acp.Chan[T]) bool) {
		for _, c := range slices.Concat(x.out, x.in) {
			if c != nil && !yield(c) {
				return
			}
		}
	}
}

// Exchange sends out[i] to the ith rank of Open's to, and receives in[i] from the ith of its from, for all i
// at a time. A neighbor must send as many values as in[i] holds; fewer are an error that wraps
// acp.ErrLength. out and in must not overlap.
//
// When ctx ends first, or a neighbor is lost, some messages have been exchanged and others not: the error is
// returned by all later calls.
func (x *Exchange[T]) Exchange(ctx context.Context, out, in [][]T) error {
	if x.failed != nil {
		return x.failed
	}
	if len(out) != len(x.out) || len(in) != len(x.in) {
		return x.newError("exchange", fmt.Errorf("%w: %d and %d slices, want %d and %d", acp.ErrLength, len(out), len(in), len(x.out), len(x.in)))
	}
	sends := make([]*acp.Request, len(out))
	for i, c := range x.out {
		if c != nil {
			sends[i] = c.Channel().Send(plain.BytesOf(out[i]))
		}
	}
	for i, c := range x.in {
		if c == nil || x.failed != nil {
			continue
		}
		n, err := c.RecvSlice(ctx, in[i])
		if err == nil && n != len(in[i]) {
			err = x.newError("exchange", fmt.Errorf("%w: %d values on %v, want %d", acp.ErrLength, n, c.Channel(), len(in[i])))
		}
		x.failed = err
	}
	for _, r := range sends {
		if r != nil && x.failed == nil {
			_, x.failed = r.Wait(ctx)
		}
	}
	return x.failed
}

func (x *Exchange[T]) newError(op string, err error) error {
	return &acp.Error{Rank: x.p.Rank(), Op: op, Args: "with neighbors", Err: err}
}

// Memory returns the memory of the channels in bytes.
func (x *Exchange[T]) Memory() (n int) {
	for c := range x.channels() {
		n += c.Channel().Memory()
	}
	return n
}

// Close frees the channels. All neighbors must call it.
func (x *Exchange[T]) Close(ctx context.Context) error {
	var errs []error
	for c := range x.channels() { // senders first: a receiver waits for its sender
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}
