package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/match"
)

// checkMessageArgs looks at the arguments of a call.
func (c *Comm) checkMessageArgs(b Buffer, rank, tag int, receive bool) error {
	if err := c.checkUsable(); err != nil {
		return err
	}
	switch {
	case (rank < 0 || rank >= c.size) && rank != ProcNull && !(receive && rank == AnySource):
		return fmt.Errorf("%w: %d, there are %d", ErrRank, rank, c.size)
	case tag < 0 && !(receive && tag == AnyTag) || tag > MaxTag:
		return fmt.Errorf("%w: %d, they go from 0 to %d", ErrTag, tag, MaxTag)
	}
	return checkBuffer(b, receive)
}

// messageBytes is a message in one piece: the buffer's memory, or a copy.
func (c *Comm) messageBytes(b Buffer, copied bool) []byte {
	if c.world.o.Check {
		return packWithSignature(b)
	}
	if mem, ok := b.Contiguous(); ok && !copied {
		return mem
	}
	mem := make([]byte, b.Size())
	b.Pack(mem)
	return mem
}

// sendMode is how a message is sent.
type sendMode uint8

const (
	standard    sendMode = iota
	synchronous          // done when it has met its receive
	buffered             // copied
)

// startSend begins a send of r.
func (c *Comm) startSend(r *Request, b Buffer, dest, tag int, how sendMode) error {
	r.comm, r.op = c, "send"
	if err := c.checkMessageArgs(b, dest, tag, false); err != nil {
		return r.failBeforeStart(fmt.Sprintf("to %d, tag %d", dest, tag), err)
	}
	r.p.Envelope = match.Envelope{Context: c.contextID, Tag: int32(tag)}
	if dest == ProcNull {
		r.null = true
		return nil
	}
	r.p.Dest, r.p.Buf, r.p.Sync = c.worldRank(dest), c.messageBytes(b, how == buffered), how == synchronous
	r.p.Signature = messageSignature(b)
	if err := c.eng.Send(&r.p); err != nil {
		return r.failBeforeStart(r.describePeer(), err)
	}
	return nil
}

// waitAndRecycle is the end of a blocking call: the request is used again.
func waitAndRecycle(r *Request) (Status, error) {
	s, err := r.Wait()
	*r = Request{}
	requests.Put(r)
	return s, err
}

// Send sends a message (MPI_Send). It returns when the buffer may be used
// again, which of a long message is when its receive is there.
func (c *Comm) Send(b Buffer, dest, tag int) error {
	r := requests.Get().(*Request)
	if err := c.startSend(r, b, dest, tag, standard); err != nil {
		return err
	}
	_, err := waitAndRecycle(r)
	return err
}

// Ssend is Send that returns when the message has met its receive (MPI_Ssend).
func (c *Comm) Ssend(b Buffer, dest, tag int) error {
	r := requests.Get().(*Request)
	if err := c.startSend(r, b, dest, tag, synchronous); err != nil {
		return err
	}
	_, err := waitAndRecycle(r)
	return err
}

// Rsend is Send whose receive is known to be there (MPI_Rsend). That is not
// made use of: a message that comes too early is kept, as with Send.
func (c *Comm) Rsend(b Buffer, dest, tag int) error { return c.Send(b, dest, tag) }

// Bsend is Send that never waits for the receive: the message is copied
// (MPI_Bsend). Memory is taken as needed; World.Finalize waits for it to leave.
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

// Isend begins a Send (MPI_Isend). An error is one of the arguments; what
// fails later is that of Wait.
func (c *Comm) Isend(b Buffer, dest, tag int) (*Request, error) {
	r := &Request{}
	return r, c.startSend(r, b, dest, tag, standard)
}

// Issend begins an Ssend (MPI_Issend).
func (c *Comm) Issend(b Buffer, dest, tag int) (*Request, error) {
	r := &Request{}
	return r, c.startSend(r, b, dest, tag, synchronous)
}

// Irsend begins an Rsend (MPI_Irsend).
func (c *Comm) Irsend(b Buffer, dest, tag int) (*Request, error) { return c.Isend(b, dest, tag) }

// Ibsend begins a Bsend (MPI_Ibsend): the buffer may be used again at once.
func (c *Comm) Ibsend(b Buffer, dest, tag int) (*Request, error) {
	r := &Request{}
	return r, c.startSend(r, b, dest, tag, buffered)
}
