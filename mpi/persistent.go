package mpi

import (
	"errors"

	"github.com/softrnic/softrnic/mpi/internal/pt2pt"
)

// Persistent requests: communication with fixed arguments that Start starts repeatedly (MPI
// 4.1, 3.9). A request is inactive before Start and after Wait: Wait returns at once, and
// WaitAny ignores it.

// SendInit makes a persistent Send (MPI_Send_init).
func (c *Comm) SendInit(b Buffer, dest, tag int) (*Request, error) {
	r, err := c.messageState().SendInit(b.data, dest, tag, pt2pt.Standard)
	return handleOf(r), err
}

// SsendInit makes a persistent Ssend (MPI_Ssend_init).
func (c *Comm) SsendInit(b Buffer, dest, tag int) (*Request, error) {
	r, err := c.messageState().SendInit(b.data, dest, tag, pt2pt.Synchronous)
	return handleOf(r), err
}

// RsendInit makes a persistent Rsend (MPI_Rsend_init).
func (c *Comm) RsendInit(b Buffer, dest, tag int) (*Request, error) { return c.SendInit(b, dest, tag) }

// BsendInit makes a persistent Bsend (MPI_Bsend_init): each Start copies the message.
func (c *Comm) BsendInit(b Buffer, dest, tag int) (*Request, error) {
	r, err := c.messageState().SendInit(b.data, dest, tag, pt2pt.Buffered)
	return handleOf(r), err
}

// RecvInit makes a persistent Recv (MPI_Recv_init).
func (c *Comm) RecvInit(b Buffer, source, tag int) (*Request, error) {
	r, err := c.messageState().RecvInit(b.data, source, tag)
	return handleOf(r), err
}

// Start starts a persistent request (MPI_Start). It returns an ErrRequest if r is null, active,
// freed or not persistent.
func (r *Request) Start() error {
	if r.core().IsNull() {
		return (*Comm)(nil).fail("start", "", errNullRequest)
	}
	return r.core().Start()
}

// StartAll starts several requests (MPI_Startall) and joins their errors.
func StartAll(rs ...*Request) (errs error) {
	for _, r := range rs {
		errs = errors.Join(errs, r.Start())
	}
	return errs
}

// Free frees an inactive persistent request (MPI_Request_free). It returns an ErrRequest for
// any other request.
func (r *Request) Free() error {
	if r.core().IsNull() {
		return (*Comm)(nil).fail("free", "", errNullRequest)
	}
	return r.core().Free()
}
