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
// When the context of a call ends first, or a rank is lost, the other ranks may not complete the call, and
// all later calls return its error.
type Network struct {
	p      *acp.Process
	out    []*acp.Chan[byte] // to the rank 2^k above
	in     []*acp.Chan[byte] // from the rank 2^k below
	failed error             // the first failure
}

// Open creates the channels, without waiting for the other ranks. All ranks must use equal options, whose
// zero value means slots of 4 KiB, 2 of a sender and 4 of a receiver.
func Open(p *acp.Process, o acp.ChannelOptions) (*Network, error) {
	o.SlotSize = cmp.Or(o.SlotSize, 4<<10)
	sender, receiver := o, o
	sender.Slots, receiver.Slots = cmp.Or(o.Slots, 2), cmp.Or(o.Slots, 4)
	n := &Network{p: p}
	for distance := 1; distance < p.Size(); distance *= 2 {
		out, err := acp.NewChan[byte](p, p.Rank(), n.rankAbove(p.Rank(), distance), sender)
		if err != nil {
			return nil, err
		}
		in, err := acp.NewChan[byte](p, n.rankAbove(p.Rank(), -distance), p.Rank(), receiver)
		if err != nil {
			return nil, err
		}
		n.out, n.in = append(n.out, out), append(n.in, in)
	}
	return n, nil
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

// runCall runs a collective call on values of type T, and records its failure.
func runCall[T any](n *Network, op string, root int, f func() error) error {
	if n.failed != nil {
		return n.failed
	}
	var err error
	switch t := reflect.TypeFor[T](); {
	case !plain.IsPlain(t):
		err = fmt.Errorf("%w: type %v contains references", acp.ErrOptions, t)
	case root < 0 || root >= n.p.Size():
		err = fmt.Errorf("%w: root %d", acp.ErrRank, root)
	default:
		if err = f(); err == nil {
			return nil
		}
	}
	err = &acp.Error{Rank: n.p.Rank(), Op: op, Err: err}
	n.failed = err
	return err
}

// lengthError returns the error of a buffer of the wrong length.
func lengthError(name string, got, want int) error {
	return fmt.Errorf("%w: %s has %d values, want %d", acp.ErrLength, name, got, want)
}
