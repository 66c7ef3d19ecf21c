package collective

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// ErrRoot is the error of a root that is not a rank of the communicator.
var ErrRoot = errors.New("mpi: invalid root")

// validateOp checks the arguments of a call and drops buffers that are not significant
// at this rank.
func (c *Comm) validateOp(o *Op) error {
	switch {
	case o.argErr != nil:
		return o.argErr
	case o.grid != nil:
		return o.validateNeighbors()
	}
	s := &shapes[o.collective]
	if s.rooted {
		if o.root < 0 || o.root >= c.Size {
			return fmt.Errorf("%w: %d, want [0, %d)", ErrRoot, o.root, c.Size)
		}
		if o.root != c.Rank {
			switch o.collective {
			case coll.Reduce:
				o.recv = datatype.Buffer{}
				return cmp.Or(o.send.Check(false), o.checkReduceOp(o.send))
			case coll.Gather, coll.Gatherv:
				o.recv, o.recvLayout = datatype.Buffer{}, blockLayout{}
				return o.send.Check(false)
			case coll.Scatter, coll.Scatterv:
				o.send, o.sendLayout = datatype.Buffer{}, blockLayout{}
				return o.recv.Check(true)
			}
		}
	}
	switch o.collective {
	case coll.Barrier:
		return nil
	case coll.Bcast:
		return o.recv.Check(o.root != c.Rank)
	case coll.Alltoallw:
		return c.validateBufferLists(o)
	}
	return c.validateBufferPair(o)
}

// checkReduceOp checks the operation of a reduction. Replace and NoOp are for one-sided
// operations (MPI 4.1, 12.3.4).
func (o *Op) checkReduceOp(b datatype.Buffer) error {
	if o.reduceOp.Is(datatype.Replace) || o.reduceOp.Is(datatype.NoOp) {
		return fmt.Errorf("%w: %v is for one-sided operations", datatype.ErrOp, o.reduceOp)
	}
	return o.reduceOp.Fits(b)
}

// validateBufferPair checks a call with two buffers, of which one may be InPlace.
func (c *Comm) validateBufferPair(o *Op) error {
	s := &shapes[o.collective]
	send, recv := s.send, s.recv
	switch scatters := o.collective == coll.Scatter || o.collective == coll.Scatterv; {
	case scatters && o.recv.IsInPlace():
		o.inPlace, recv = true, noBuffer
	case !scatters && o.send.IsInPlace():
		o.inPlace = true
		if o.collective == coll.ReduceScatter || o.collective == coll.ReduceScatterBlock {
			recv, o.recvLayout = send, o.sendLayout // recv holds the whole vector
		}
		send = noBuffer
	}
	var ours, theirs datatype.Signature
	var err error
	if send != noBuffer {
		if err = o.send.Check(false); err != nil {
			return err
		}
		if ours, err = c.ownSignature(o.send, send, o.sendLayout, "send"); err != nil {
			return err
		}
	}
	if recv != noBuffer {
		if err = o.recv.Check(true); err != nil {
			return err
		}
		if theirs, err = c.ownSignature(o.recv, recv, o.recvLayout, "receive"); err != nil {
			return err
		}
		if recv == layoutBlock && c.job.Check {
			if err := o.recvLayout.checkOverlap(); err != nil {
				return err
			}
		}
	}
	if o.collective == coll.ReduceScatter {
		if err := o.checkReduceScatterCounts(); err != nil {
			return err
		}
	}
	if s.op {
		b := o.send
		if o.inPlace {
			b = o.recv
		}
		if err := o.checkReduceOp(b); err != nil {
			return err
		}
	}
	if o.inPlace {
		return nil
	}
	if err := checkSelfSignatures(ours, theirs); err != nil {
		return err
	}
	if buffersOverlap(o.send, o.recv) {
		return fmt.Errorf("%w: send and receive buffers overlap; use InPlace", datatype.ErrLayout)
	}
	return nil
}

// checkReduceScatterCounts checks that the counts of ReduceScatter cover its vector.
func (o *Op) checkReduceScatterCounts() error {
	b, sum := o.send, 0
	if o.inPlace {
		b = o.recv
	}
	for _, n := range o.sendLayout.counts {
		sum += n
	}
	if sum != b.Count() || o.sendLayout.displs != nil {
		return fmt.Errorf("%w: sum of counts is %d, vector has %d elements", datatype.ErrCount, sum, b.Count())
	}
	return nil
}

// ownSignature returns the type signature of the block that a rank sends to itself, or receives
// from itself.
func (c *Comm) ownSignature(b datatype.Buffer, e extent, p blockLayout, name string) (datatype.Signature, error) {
	s, n := b.Signature(), b.Count()
	switch e {
	case wholeBuffer:
		return s, nil
	case equalBlocks:
		if n%c.Size != 0 {
			return s, fmt.Errorf("%w: %d elements to %s: want equal blocks for %d ranks", datatype.ErrCount, n, name, c.Size)
		}
		n /= c.Size
	case layoutBlock:
		if err := p.checkBounds(b, c.Size, name); err != nil {
			return s, err
		}
		n = p.counts[c.Rank]
	}
	if b.Count() > 0 {
		s.Count = s.Count / int64(b.Count()) * int64(n) // a struct may be several elements
	}
	return s, nil
}

// checkSelfSignatures compares the block that a rank sends to itself with the block that it
// receives from itself.
func checkSelfSignatures(send, recv datatype.Signature) error {
	switch {
	case send.Count == 0 && recv.Count == 0:
	case recv.Count > 0 && recv.Accept(datatype.Signature{Kind: send.Kind, Unit: send.Unit, Count: min(1, send.Count)}) != nil:
		return fmt.Errorf("%w: sends %v, receives %v", datatype.ErrSignature, send.Kind, recv.Kind)
	case send.Count != recv.Count:
		return fmt.Errorf("%w: sends %d elements to itself, receives %d", datatype.ErrCount, send.Count, recv.Count)
	}
	return nil
}

// validateBufferLists checks the arguments of Alltoallw.
func (c *Comm) validateBufferLists(o *Op) error {
	o.inPlace = len(o.sends) == 1 && o.sends[0].IsInPlace()
	if o.inPlace {
		o.sends = nil
	}
	if len(o.recvs) != c.Size || !o.inPlace && len(o.sends) != c.Size {
		return fmt.Errorf("%w: %d buffers to send, %d to receive: want one for each of %d ranks", datatype.ErrCount, len(o.sends), len(o.recvs), c.Size)
	}
	for _, b := range o.sends {
		if err := b.Check(false); err != nil {
			return err
		}
	}
	for _, b := range o.recvs {
		if err := b.Check(true); err != nil {
			return err
		}
	}
	if o.inPlace {
		return nil
	}
	return checkSelfSignatures(o.sends[c.Rank].Signature(), o.recvs[c.Rank].Signature())
}

// validateNeighbors checks the arguments of a neighborhood call.
func (o *Op) validateNeighbors() error {
	for receives, b := range []datatype.Buffer{o.send, o.recv} {
		if err := b.Check(receives == 1); err != nil {
			return err
		}
	}
	n := 2 * len(o.grid.Dims)
	out, in := o.send.Count(), o.recv.Count()
	if o.collective == coll.Allgather {
		out *= n
	}
	if out != in || n > 0 && in%n != 0 {
		return fmt.Errorf("%w: %d elements to send, %d to receive: want equal blocks for %d neighbors", datatype.ErrCount, out, in, n)
	}
	if in == 0 {
		return nil
	}
	if err := checkSelfSignatures(o.send.Slice(0, 1).Signature(), o.recv.Slice(0, 1).Signature()); err != nil {
		return err
	}
	if buffersOverlap(o.send, o.recv) {
		return fmt.Errorf("%w: send and receive buffers overlap", datatype.ErrLayout)
	}
	return nil
}

// buffersOverlap reports whether two contiguous buffers overlap.
func buffersOverlap(a, b datatype.Buffer) bool {
	x, ok := a.Contiguous()
	y, ok2 := b.Contiguous()
	if !ok || !ok2 || len(x) == 0 || len(y) == 0 {
		return false
	}
	i, j := uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&y[0]))
	return i < j+uintptr(len(y)) && j < i+uintptr(len(x))
}
