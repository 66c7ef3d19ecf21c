package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Special ranks, tags and limits.
const (
	AnySource = -1             // MPI_ANY_SOURCE
	AnyTag    = -1             // MPI_ANY_TAG
	ProcNull  = comm.ProcNull  // MPI_PROC_NULL: communication with it completes at once
	Undefined = comm.Undefined // MPI_UNDEFINED: no color, not a rank
	MaxTag    = 1<<31 - 1      // MPI_TAG_UB
)

// The wildcards are those of package match.
var (
	_ [AnySource - match.Any]struct{} = [0]struct{}{}
	_ [AnyTag - match.Any]struct{}    = [0]struct{}{}
)

// checkMessageArgs validates the arguments of a send, or of a receive.
func (c *Comm) checkMessageArgs(b datatype.Buffer, rank, tag int, receive bool) error {
	if err := c.checkUsable(); err != nil {
		return err
	}
	switch {
	case (rank < 0 || rank >= c.base.Size) && rank != ProcNull && !(receive && rank == AnySource):
		return fmt.Errorf("%w: %d, want [0, %d)", ErrRank, rank, c.base.Size)
	case tag < 0 && !(receive && tag == AnyTag) || tag > MaxTag:
		return fmt.Errorf("%w: %d, want 0 to %d", ErrTag, tag, MaxTag)
	}
	return b.Check(receive)
}

// messageBytes returns the payload of a message: the memory of a contiguous buffer, or a packed
// copy. With copied it always returns a copy. With Options.Check the payload starts with the
// type signature.
func (c *Comm) messageBytes(b datatype.Buffer, copied bool) []byte {
	if c.world.o.Check {
		return b.PackSigned()
	}
	if mem, ok := b.Contiguous(); ok && !copied {
		return mem
	}
	mem := make([]byte, b.Size())
	b.Pack(mem)
	return mem
}

// sendMode is the communication mode of a send (MPI 4.1, 3.4).
type sendMode uint8

const (
	standard    sendMode = iota
	synchronous          // done after the message has matched its receive
	buffered             // done at once: the message is copied
)

// startSend starts r as a send.
func (c *Comm) startSend(r *Request, buf Buffer, dest, tag int, mode sendMode) error {
	b := buf.data
	r.comm, r.op = c, "send"
	if err := c.checkMessageArgs(b, dest, tag, false); err != nil {
		return r.failBeforeStart(fmt.Sprintf("to %d, tag %d", dest, tag), err)
	}
	r.p.Envelope = match.Envelope{Context: c.base.ContextID, Tag: int32(tag)}
	if dest == ProcNull {
		r.neverStarted = true
		return nil
	}
	r.p.Dest, r.p.Buf, r.p.Sync = c.base.WorldRank(dest), c.messageBytes(b, mode == buffered), mode == synchronous
	r.p.Signature = b.MessageSignature()
	if err := c.base.Engine.Send(&r.p); err != nil {
		return r.failBeforeStart(r.describePeer(), err)
	}
	return nil
}

// waitAndRecycle waits for the request of a blocking call and returns it to the pool.
func waitAndRecycle(r *Request) (Status, error) {
	s, err := r.Wait()
	*r = Request{}
	requests.Put(r)
	return s, err
}

// Send sends a message (MPI_Send). It returns when the buffer may be reused; of a rendezvous
// message that is after its receive was posted.
func (c *Comm) Send(b Buffer, dest, tag int) error {
	r := requests.Get().(*Request)
	if err := c.startSend(r, b, dest, tag, standard); err != nil {
		return err
	}
	_, err := waitAndRecycle(r)
	return err
}

// Ssend is Send that returns after the message has matched its receive (MPI_Ssend).
func (c *Comm) Ssend(b Buffer, dest, tag int) error {
	r := requests.Get().(*Request)
	if err := c.startSend(r, b, dest, tag, synchronous); err != nil {
		return err
	}
	_, err := waitAndRecycle(r)
	return err
}

// Rsend is Send for a receive that is known to be posted (MPI_Rsend). It is not optimized: an
// early message is an unexpected message, as with Send.
func (c *Comm) Rsend(b Buffer, dest, tag int) error { return c.Send(b, dest, tag) }

// Bsend is Send that never waits for the receive: it copies the message (MPI_Bsend). Memory is
// allocated as needed. World.Finalize waits for the sends.
func (c *Comm) Bsend(b Buffer, dest, tag int) error {
	r, err := c.Ibsend(b, dest, tag)
	if err != nil {
		return err
	}
	_, done, err := r.Test()
	if !done {
		c.world.addDetached(r)
	}
	return err
}

// Isend starts a Send (MPI_Isend). Its error is one of the arguments; later failures are
// returned by Wait.
func (c *Comm) Isend(b Buffer, dest, tag int) (*Request, error) {
	r := &Request{}
	return r, c.startSend(r, b, dest, tag, standard)
}

// Issend starts an Ssend (MPI_Issend).
func (c *Comm) Issend(b Buffer, dest, tag int) (*Request, error) {
	r := &Request{}
	return r, c.startSend(r, b, dest, tag, synchronous)
}

// Irsend starts an Rsend (MPI_Irsend).
func (c *Comm) Irsend(b Buffer, dest, tag int) (*Request, error) { return c.Isend(b, dest, tag) }

// Ibsend starts a Bsend (MPI_Ibsend): the buffer may be reused at once.
func (c *Comm) Ibsend(b Buffer, dest, tag int) (*Request, error) {
	r := &Request{}
	return r, c.startSend(r, b, dest, tag, buffered)
}
