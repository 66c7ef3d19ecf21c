package mpi

import (
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/pt2pt"
)

// Special ranks, tags and limits.
const (
	AnySource = -1             // MPI_ANY_SOURCE
	AnyTag    = -1             // MPI_ANY_TAG
	ProcNull  = comm.ProcNull  // MPI_PROC_NULL: communication with it completes at once
	Undefined = comm.Undefined // MPI_UNDEFINED: no color, not a rank
	MaxTag    = pt2pt.MaxTag   // MPI_TAG_UB, 2^31-1
)

// The wildcards are those of package match.
var (
	_ [AnySource - match.Any]struct{} = [0]struct{}{}
	_ [AnyTag - match.Any]struct{}    = [0]struct{}{}
)

// messageState returns the state for messages, which the null communicator has, too.
func (c *Comm) messageState() *pt2pt.Comm {
	if c.isNull() {
		return nullMessages
	}
	return c.messages
}

// nullMessages is the state of the null communicator.
var nullMessages = pt2pt.NewNullComm((*Comm)(nil).fail)

// Send sends a message (MPI_Send). It returns when the buffer may be reused; of a rendezvous
// message that is after its receive was posted.
func (c *Comm) Send(b Buffer, dest, tag int) error {
	return c.messageState().Send(b.data, dest, tag, pt2pt.Standard)
}

// Ssend is Send that returns after the message has matched its receive (MPI_Ssend).
func (c *Comm) Ssend(b Buffer, dest, tag int) error {
	return c.messageState().Send(b.data, dest, tag, pt2pt.Synchronous)
}

// Rsend is Send for a receive that is known to be posted (MPI_Rsend). It is not optimized: an
// early message is an unexpected message, as with Send.
func (c *Comm) Rsend(b Buffer, dest, tag int) error { return c.Send(b, dest, tag) }

// Bsend is Send that never waits for the receive: it copies the message (MPI_Bsend). Memory is
// allocated as needed. World.Finalize waits for the sends.
func (c *Comm) Bsend(b Buffer, dest, tag int) error {
	return c.messageState().Bsend(b.data, dest, tag)
}

// Isend starts a Send (MPI_Isend). Its error is one of the arguments; later failures are
// returned by Wait.
func (c *Comm) Isend(b Buffer, dest, tag int) (*Request, error) {
	r, err := c.messageState().Isend(b.data, dest, tag, pt2pt.Standard)
	return handleOf(r), err
}

// Issend starts an Ssend (MPI_Issend).
func (c *Comm) Issend(b Buffer, dest, tag int) (*Request, error) {
	r, err := c.messageState().Isend(b.data, dest, tag, pt2pt.Synchronous)
	return handleOf(r), err
}

// Irsend starts an Rsend (MPI_Irsend).
func (c *Comm) Irsend(b Buffer, dest, tag int) (*Request, error) { return c.Isend(b, dest, tag) }

// Ibsend starts a Bsend (MPI_Ibsend): the buffer may be reused at once.
func (c *Comm) Ibsend(b Buffer, dest, tag int) (*Request, error) {
	r, err := c.messageState().Isend(b.data, dest, tag, pt2pt.Buffered)
	return handleOf(r), err
}
