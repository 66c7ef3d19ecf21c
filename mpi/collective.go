package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/coll"
	"github.com/softrnic/softrnic/mpi/datatype"
	"github.com/softrnic/softrnic/mpi/match"
)

// InPlace in the place of a buffer says that the data is in the other one
// already (MPI_IN_PLACE).
var InPlace = datatype.Bytes(mark[:])

var mark [1]byte

func isInPlace(b Buffer) bool {
	mem, ok := b.Contiguous()
	return ok && len(mem) == 1 && &mem[0] == &mark[0]
}

// net is what an algorithm sees of a communicator during one call: messages
// with a tag of their own.
type net struct {
	c   *Comm
	tag int32
}

func (n net) Rank() int { return n.c.rank }
func (n net) Size() int { return n.c.size }

// Isend implements coll.Net.
func (n net) Isend(to int, b []byte) coll.Request {
	r := n.request("send")
	r.p.Envelope = match.Envelope{Context: n.c.id + 1, Tag: n.tag}
	r.p.Dest, r.p.Buf = n.c.job(to), b
	r.err = n.c.eng.Send(&r.p)
	return r
}

// Irecv implements coll.Net.
func (n net) Irecv(from int, b []byte) coll.Request {
	r := n.request("receive")
	r.p.Envelope = match.Envelope{Context: n.c.id + 1, Source: int32(n.c.job(from)), Tag: n.tag}
	r.p.Buf = b
	r.err = n.c.eng.Receive(&r.p)
	return r
}

func (n net) request(op string) *Request {
	r := requests.Get().(*Request)
	r.comm, r.op = n.c, op
	return r
}

// Wait implements coll.Net.
func (n net) Wait(rs ...coll.Request) (err error) {
	for _, any := range rs {
		r := any.(*Request)
		if r.err != nil {
			return r.err
		}
		_, e := r.Wait()
		if e == nil && r.op == "receive" && r.p.Bytes != len(r.p.Buf) {
			e = fmt.Errorf("%w: %d bytes came from rank %d, not %d", ErrMismatch, r.p.Bytes, n.c.local(int(r.p.Received.Source)), len(r.p.Buf))
		}
		if e != nil {
			return e
		}
		*r = Request{}
		requests.Put(r)
	}
	return nil
}

// call is a collective call: its place in the communicator's order is taken
// when it is made.
func (c *Comm) call() *coll.Call {
	return &coll.Call{Net: net{c, int32(c.seq.Add(1) & MaxTag)}, Choices: c.world.o.Algorithms}
}

// collective does one.
func (c *Comm) collective(op string, f func(*coll.Call) error) error {
	if c.freed.Load() {
		return c.fail(op, "", ErrFreed)
	}
	if err := f(c.call()); err != nil {
		return c.fail(op, "", err)
	}
	return nil
}

// Barrier returns when all ranks have called it (MPI_Barrier).
func (c *Comm) Barrier() error { return c.collective("barrier", (*coll.Call).Barrier) }

// in is a buffer in one piece, to be read; in place that is there.
func in(b Buffer, there []byte) ([]byte, error) {
	if isInPlace(b) {
		return there, nil
	}
	if err := b.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBuffer, err)
	}
	return contiguous(b), nil
}

// out calls f with a buffer in one piece, to be read and written.
func out(b Buffer, f func([]byte) error) error {
	if err := b.RecvErr(); err != nil {
		return fmt.Errorf("%w: %w", ErrBuffer, err)
	}
	mem, ok := b.Contiguous()
	if ok {
		return f(mem)
	}
	mem = contiguous(b)
	if err := f(mem); err != nil {
		return err
	}
	b.Unpack(mem)
	return nil
}

// Bcast gives all ranks what is in the root's buffer (MPI_Bcast).
func (c *Comm) Bcast(b Buffer, root int) error {
	return c.collective("bcast", func(call *coll.Call) error {
		return out(b, func(mem []byte) error { return call.Bcast(root, mem) })
	})
}

// reduction is an operation on a buffer's elements.
func reduction(b Buffer, op Op) (coll.Reduction, error) {
	k := b.Kind()
	if err := op.Valid(k); err != nil {
		return coll.Reduction{}, err
	}
	return coll.Reduction{Size: b.ElementSize(), Commutative: op.Commutative(),
		Reduce: func(inout, in []byte) error { return op.Apply(k, inout, in) }}, nil
}

// Allreduce combines the elements of all ranks' send, and gives all the result
// (MPI_Allreduce).
func (c *Comm) Allreduce(send, recv Buffer, op Op) error {
	return c.collective("allreduce", func(call *coll.Call) error {
		red, err := reduction(recv, op)
		if err != nil {
			return err
		}
		return out(recv, func(mem []byte) error {
			from, err := in(send, mem)
			if err != nil {
				return err
			}
			return call.Allreduce(from, mem, red)
		})
	})
}
