package mpi

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Persistent requests: communication whose arguments are given once, and which is
// then begun by Start as often as one likes (MPI 4.1, 3.9). Until it is begun, and
// after it has been waited for, it is inactive: Wait returns at once, WaitAny does
// not return it.

// SendInit keeps a Send (MPI_Send_init).
func (c *Comm) SendInit(b Buffer, dest, tag int) (*Request, error) {
	return c.sendInit(b, dest, tag, func(r *Request) error { return c.startSend(r, b, dest, tag, standard) })
}

// SsendInit keeps an Ssend (MPI_Ssend_init).
func (c *Comm) SsendInit(b Buffer, dest, tag int) (*Request, error) {
	return c.sendInit(b, dest, tag, func(r *Request) error { return c.startSend(r, b, dest, tag, synchronous) })
}

// RsendInit keeps an Rsend (MPI_Rsend_init).
func (c *Comm) RsendInit(b Buffer, dest, tag int) (*Request, error) { return c.SendInit(b, dest, tag) }

// BsendInit keeps a Bsend (MPI_Bsend_init): each Start copies the message.
func (c *Comm) BsendInit(b Buffer, dest, tag int) (*Request, error) {
	return c.sendInit(b, dest, tag, func(r *Request) error { return c.startSend(r, b, dest, tag, buffered) })
}

func (c *Comm) sendInit(b Buffer, dest, tag int, start func(*Request) error) (*Request, error) {
	if err := c.checkMessageArgs(b, dest, tag, false); err != nil {
		return nil, c.fail("send-init", fmt.Sprintf("to %d, tag %d", dest, tag), err)
	}
	return &Request{comm: c, op: "send", persistent: true, start: start}, nil
}

// RecvInit keeps a Recv (MPI_Recv_init).
func (c *Comm) RecvInit(b Buffer, source, tag int) (*Request, error) {
	if err := c.checkMessageArgs(b, source, tag, true); err != nil {
		return nil, c.fail("receive-init", fmt.Sprintf("from %d, tag %d", source, tag), err)
	}
	start := func(r *Request) error { return c.startReceive(r, b, source, tag) }
	return &Request{comm: c, op: "receive", persistent: true, start: start}, nil
}

// Start begins the communication of a persistent request (MPI_Start). It is an
// ErrRequest if r is null, active, freed or not persistent.
func (r *Request) Start() error {
	switch {
	case r.isNull():
		return (*Comm)(nil).fail("start", "", errNullRequest)
	case r.start == nil:
		return r.comm.fail("start", "", fmt.Errorf("%w: it is not persistent, or was freed", ErrRequest))
	case r.active:
		return r.comm.fail("start", "", fmt.Errorf("%w: it is active", ErrRequest))
	}
	r.p, r.null, r.err = protocol.Request{}, false, nil
	if err := r.start(r); err != nil {
		return err
	}
	r.active = true
	return nil
}

// StartAll begins several (MPI_Startall). The error is that of all that failed.
func StartAll(rs ...*Request) (errs error) {
	for _, r := range rs {
		errs = errors.Join(errs, r.Start())
	}
	return errs
}

// Free gives up a persistent request that is not active (MPI_Request_free). It is an
// ErrRequest if r is null or any other.
func (r *Request) Free() error {
	if r.isNull() {
		return (*Comm)(nil).fail("free", "", errNullRequest)
	}
	if !r.persistent || r.active || r.start == nil {
		return r.comm.fail("free", "", fmt.Errorf("%w: it is not persistent, or active, or was freed", ErrRequest))
	}
	r.start = nil
	if r.free != nil {
		r.free()
	}
	return nil
}

// isInactive reports whether there is nothing to wait for.
func (r *Request) isInactive() bool { return r.isNull() || r.persistent && !r.active }
