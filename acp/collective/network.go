package collective

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/internal/plain"
)

// Network is this rank's end of the channels that collective calls use. All ranks must make the same calls
// with it in the same order, with messages of the same length. It must not be used concurrently.
//
// A call with invalid arguments is refused before anything is sent, and counts as not made: the next call of
// the rank must be the same with valid ones. It concerns this rank alone, so that the other ranks, if their
// arguments are valid, wait in that call or have already sent their messages of it.
//
// When the context of a call ends first, a rank is lost, or a message has another length than its receiver
// expects, the other ranks may not complete the call, and all later calls return its error.
type Network struct {
	p      *acp.Process
	out    []*acp.Chan[byte] // to the rank 2^k above
	in     []*acp.Chan[byte] // from the rank 2^k below
	failed error             // the first failure
}

// Open creates the channels, without waiting for the other ranks. All ranks must use equal options, whose
// zero value means slots of 4 KiB, 2 of a sender and 4 of a receiver.
//
// If a rank's Open fails, it frees the channels that it has created. The other ranks, if their Open has
// succeeded, must call Close, which waits for the channels that are missing until its context ends.
func Open(p *acp.Process, o acp.ChannelOptions) (*Network, error) {
	o.SlotSize = cmp.Or(o.SlotSize, 4<<10)
	sender, receiver := o, o
	sender.Slots, receiver.Slots = cmp.Or(o.Slots, 2), cmp.Or(o.Slots, 4)
	n := &Network{p: p}
	for distance := 1; distance < p.Size(); distance *= 2 {
		// The receiver first: its options are invalid if those of the sender are.
		in, err := acp.NewChan[byte](p, n.rankAbove(p.Rank(), -distance), p.Rank(), receiver)
		if err != nil {
			n.freeChannels()
			return nil, err
		}
		n.in = append(n.in, in)
		out, err := acp.NewChan[byte](p, p.Rank(), n.rankAbove(p.Rank(), distance), sender)
		if err != nil {
			n.freeChannels()
			return nil, err
		}
		n.out = append(n.out, out)
	}
	return n, nil
}

// freeChannels starts to free the channels, without waiting for the other ranks.
func (n *Network) freeChannels() {
	for _, c := range append(n.out, n.in...) {
		c.Channel().Free()
	}
}

// rankAbove returns the rank that is distance above in the ring of all ranks.
func (n *Network) rankAbove(rank, distance int) int {
	return ((rank+distance)%n.p.Size() + n.p.Size()) % n.p.Size()
}

// Memory returns the memory of the channels in bytes.
func (n *Network) Memory() (bytes int) {
	for k := range n.out {
		bytes += n.out[k].Channel().Memory() + n.in[k].Channel().Memory()
	}
	return bytes
}

// Close frees the channels. All ranks must call it.
func (n *Network) Close(ctx context.Context) error {
	var errs []error
	for _, c := range n.out { // a receiver waits for its sender
		errs = append(errs, c.Close(ctx))
	}
	for _, c := range n.in {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}

// exchangeBytes sends out to the rank 2^k above and receives in from the rank 2^k below at the same time. Nil is
// nothing to send or to receive.
func (n *Network) exchangeBytes(ctx context.Context, k int, out, in []byte) error {
	var sent *acp.Request
	if out != nil {
		sent = n.out[k].Channel().Send(out)
	}
	if in != nil {
		got, err := n.in[k].RecvSlice(ctx, in)
		if err == nil && got != len(in) {
			err = fmt.Errorf("%w: %d bytes on %v, want %d", acp.ErrLength, got, n.in[k].Channel(), len(in))
		}
		if err != nil {
			return err
		}
	}
	if sent == nil {
		return nil
	}
	_, err := sent.Wait(ctx)
	return err
}

// runCall runs a collective call on values of type T, and records its failure. A call with invalid arguments,
// such as those that invalid is the error of, is refused and leaves n usable.
func runCall[T any](n *Network, op string, root int, invalid error, f func() error) error {
	if n.failed != nil {
		return n.failed
	}
	switch t := reflect.TypeFor[T](); {
	case !plain.IsPlain(t):
		invalid = fmt.Errorf("%w: type %v contains references", acp.ErrOptions, t)
	case root < 0 || root >= n.p.Size():
		invalid = fmt.Errorf("%w: root %d", acp.ErrRank, root)
	}
	if invalid != nil {
		return n.newError(op, invalid)
	}
	if err := f(); err != nil {
		n.failed = n.newError(op, err)
	}
	return n.failed
}

// newError returns the error of a call.
func (n *Network) newError(op string, err error) error {
	return &acp.Error{Rank: n.p.Rank(), Op: op, Err: err}
}

// checkLength returns the error of a buffer of the wrong length.
func checkLength(name string, got, want int) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%w: %s has %d values, want %d", acp.ErrLength, name, got, want)
}

// checkLengthAt is checkLength at root. Other ranks do not use the buffer.
func (n *Network) checkLengthAt(root int, name string, got, want int) error {
	if n.p.Rank() != root {
		return nil
	}
	return checkLength(name, got, want)
}
