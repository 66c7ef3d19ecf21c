package mpi

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/datatype"
	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// valid looks at a call's arguments, and drops those that do not count at this
// rank.
func (c *Comm) valid(o *operation) error {
	switch {
	case o.wrong != nil:
		return o.wrong
	case o.cart != nil:
		return o.cart.valid(o)
	}
	s := &shapes[o.what]
	if s.rooted {
		if o.root < 0 || o.root >= c.size {
			return fmt.Errorf("%w: %d, there are %d", ErrRoot, o.root, c.size)
		}
		if o.root != c.rank {
			switch o.what {
			case coll.Reduce:
				o.recv = Buffer{}
				return cmp.Or(alone(o.send, false), o.combines(o.send))
			case coll.Gather, coll.Gatherv:
				o.recv, o.recvParts = Buffer{}, parts{}
				return alone(o.send, false)
			case coll.Scatter, coll.Scatterv:
				o.send, o.sendParts = Buffer{}, parts{}
				return alone(o.recv, true)
			}
		}
	}
	switch o.what {
	case coll.Barrier:
		return nil
	case coll.Bcast:
		return alone(o.recv, o.root != c.rank)
	case coll.Alltoallw:
		return c.validLists(o)
	}
	return c.validPair(o)
}

// alone looks at the one buffer of a call, which is not in place.
func alone(b Buffer, receives bool) error {
	err := b.Err()
	if receives {
		err = b.RecvErr()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBuffer, err)
	}
	if isInPlace(b) {
		return fmt.Errorf("%w: this one cannot be in place", ErrBuffer)
	}
	return nil
}

// combines looks at the operation of a reduction. Replace and NoOp are for one-sided
// operations alone (MPI 4.1, 12.3.4).
func (o *operation) combines(b Buffer) error {
	if same(o.op, Replace) || same(o.op, NoOp) {
		return fmt.Errorf("%w: %v is for one-sided operations", ErrOp, o.op)
	}
	if err := o.op.Fits(b); err != nil {
		return fmt.Errorf("%w: %w", ErrOp, err)
	}
	return nil
}

// validPair looks at a call with two buffers, of which one may be in place.
func (c *Comm) validPair(o *operation) error {
	s := &shapes[o.what]
	send, recv := s.send, s.recv
	switch scatters := o.what == coll.Scatter || o.what == coll.Scatterv; {
	case scatters && isInPlace(o.recv):
		o.inPlace, recv = true, none
	case !scatters && isInPlace(o.send):
		o.inPlace = true
		if o.what == coll.ReduceScatter || o.what == coll.ReduceScatterBlock {
			recv, o.recvParts = send, o.sendParts // all of the vector is there
		}
		send = none
	}
	var ours, theirs datatype.Signature
	var err error
	if send != none {
		if err = alone(o.send, false); err != nil {
			return err
		}
		if ours, err = c.own(o.send, send, o.sendParts, "send"); err != nil {
			return err
		}
	}
	if recv != none {
		if err = alone(o.recv, true); err != nil {
			return err
		}
		if theirs, err = c.own(o.recv, recv, o.recvParts, "receive"); err != nil {
			return err
		}
		if recv == part && c.world.o.Check {
			if err := o.recvParts.apart(); err != nil {
				return err
			}
		}
	}
	if o.what == coll.ReduceScatter {
		if err := o.vector(); err != nil {
			return err
		}
	}
	if s.op {
		b := o.send
		if o.inPlace {
			b = o.recv
		}
		if err := o.combines(b); err != nil {
			return err
		}
	}
	if o.inPlace {
		return nil
	}
	if err := agree(ours, theirs); err != nil {
		return err
	}
	if overlap(o.send, o.recv) {
		return fmt.Errorf("%w: what is sent and what is received share memory: InPlace says so", ErrBuffer)
	}
	return nil
}

// vector looks at the counts of ReduceScatter, which cover all of its vector.
func (o *operation) vector() error {
	b, sum := o.send, 0
	if o.inPlace {
		b = o.recv
	}
	for _, n := range o.sendParts.counts {
		sum += n
	}
	if sum != b.Count() || o.sendParts.displs != nil {
		return fmt.Errorf("%w: pieces of %d elements in all, of a vector of %d", ErrCount, sum, b.Count())
	}
	return nil
}

// own is what a rank has for itself in a buffer.
func (c *Comm) own(b Buffer, e extent, p parts, name string) (datatype.Signature, error) {
	s, n := b.Signature(), b.Count()
	switch e {
	case whole:
		return s, nil
	case equal:
		if n%c.size != 0 {
			return s, fmt.Errorf("%w: %d elements to %s are no equal pieces for %d ranks", ErrCount, n, name, c.size)
		}
		n /= c.size
	case part:
		if err := p.valid(b, c.size, name); err != nil {
			return s, err
		}
		n = p.counts[c.rank]
	}
	if b.Count() > 0 {
		s.Count = s.Count / b.Count() * n // a struct may be several elements
	}
	return s, nil
}

// valid looks for parts that are not there.
func (p parts) valid(b Buffer, size int, name string) error {
	if len(p.counts) != size || p.displs != nil && len(p.displs) != size {
		return fmt.Errorf("%w: %d counts and %d displacements to %s are not one for each of %d ranks", ErrCount, len(p.counts), len(p.displs), name, size)
	}
	at := 0
	for i, n := range p.counts {
		if p.displs != nil {
			at = p.displs[i]
		}
		if n < 0 || at < 0 || n > b.Count() || at > b.Count()-n {
			return fmt.Errorf("%w: the %d elements at %d to %s of rank %d are not in a buffer of %d", ErrCount, n, at, name, i, b.Count())
		}
		at += n
	}
	return nil
}

// apart looks for parts that have elements in common.
func (p parts) apart() error {
	order := make([]int, 0, len(p.displs)) // without displs they have none
	for r := range p.displs {
		if p.counts[r] > 0 {
			order = append(order, r)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p.displs[a], p.displs[b]) })
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; p.displs[a]+p.counts[a] > p.displs[b] {
			return fmt.Errorf("%w: what is received of ranks %d (%d elements at %d) and %d (%d at %d) overlaps", ErrCount,
				a, p.counts[a], p.displs[a], b, p.counts[b], p.displs[b])
		}
	}
	return nil
}

// agree compares what a rank sends to itself with what it receives from itself.
func agree(send, recv datatype.Signature) error {
	switch {
	case send.Count == 0 && recv.Count == 0:
	case recv.Count > 0 && recv.Accept(datatype.Signature{Kind: send.Kind, Unit: send.Unit, Count: min(1, send.Count)}) != nil:
		return fmt.Errorf("%w: %v is sent and %v received", ErrType, send.Kind, recv.Kind)
	case send.Count != recv.Count:
		return fmt.Errorf("%w: this rank sends itself %d elements, and receives %d", ErrCount, send.Count, recv.Count)
	}
	return nil
}

// validLists looks at the arguments of Alltoallw.
func (c *Comm) validLists(o *operation) error {
	o.inPlace = len(o.sends) == 1 && isInPlace(o.sends[0])
	if o.inPlace {
		o.sends = nil
	}
	if len(o.recvs) != c.size || !o.inPlace && len(o.sends) != c.size {
		return fmt.Errorf("%w: %d buffers to send and %d to receive are not one for each of %d ranks", ErrCount, len(o.sends), len(o.recvs), c.size)
	}
	for _, b := range o.sends {
		if err := alone(b, false); err != nil {
			return err
		}
	}
	for _, b := range o.recvs {
		if err := alone(b, true); err != nil {
			return err
		}
	}
	if o.inPlace {
		return nil
	}
	return agree(o.sends[c.rank].Signature(), o.recvs[c.rank].Signature())
}

// overlap reports whether two messages share memory, as far as that is easy to
// tell.
func overlap(a, b Buffer) bool {
	x, ok := a.Contiguous()
	y, ok2 := b.Contiguous()
	if !ok || !ok2 || len(x) == 0 || len(y) == 0 {
		return false
	}
	i, j := uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&y[0]))
	return i < j+uintptr(len(y)) && j < i+uintptr(len(x))
}
