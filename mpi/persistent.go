package mpi

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Persistent requests: communication with fixed arguments that Start starts repeatedly (MPI
// 4.1, 3.9). A request is inactive before Start and after Wait: Wait returns at once, and
// WaitAny ignores it.

// SendInit makes a persistent Send (MPI_Send_init).
func (c *Comm) SendInit(b Buffer, dest, tag int) (*Request, error) {
	return c.sendInit(b, dest, tag, func(r *Request) error { return c.startSend(r, b, dest, tag, standard) })
}

// SsendInit makes a persistent Ssend (MPI_Ssend_init).
func (c *Comm) SsendInit(b Buffer, dest, tag int) (*Request, error) {
	return c.sendInit(b, dest, tag, func(r *Request) error { return c.startSend(r, b, dest, tag, synchronous) })
}

// RsendInit makes a persistent Rsend (MPI_Rsend_init).
func (c *Comm) RsendInit(b Buffer, dest, tag int) (*Request, error) { return c.SendInit(b, dest, tag) }

// BsendInit makes a persistent Bsend (MPI_Bsend_init): each Start copies the message.
func (c *Comm) BsendInit(b Buffer, dest, tag int) (*Request, error) {
	return c.sendInit(b, dest, tag, func(r *Request) error { return c.startSend(r, b, dest, tag, buffered) })
}

func (c *Comm) sendInit(b Buffer, dest, tag int, start func(*Request) error) (*Request, error) {
	if err := c.checkMessageArgs(b.data, dest, tag, false); err != nil {
		return nil, c.fail("send-init", fmt.Sprintf("to %d, tag %d", dest, tag), err)
	}
	return &Request{comm: c, op: "send", persistent: true, start: start}, nil
}

// RecvInit makes a persistent Recv (MPI_Recv_init).
func (c *Comm) RecvInit(b Buffer, source, tag int) (*Request, error) {
	if err := c.checkMessageArgs(b.data, source, tag, true); err != nil {
		return nil, c.fail("receive-init", fmt.Sprintf("from %d, tag %d", source, tag), err)
	}
	start := func(r *Request) error { return c.startReceive(r, b, source, tag) }
	return &Request{comm: c, op: "receive", persistent: true, start: start}, nil
}

// Start starts a persistent request (MPI_Start). It returns an ErrRequest if r is null, active,
// freed or not persistent.
func (r *Request) Start() error {
	switch {
	case r.isNull():
		return (*Comm)(nil).fail("start", "", errNullRequest)
	case r.start == nil:
		return r.comm.fail("start", "", fmt.Errorf("%w: not persistent, or freed", ErrRequest))
	case r.active:
		return r.comm.fail("start", "", fmt.Errorf("%w: active", ErrRequest))
	}
	r.p, r.neverStarted, r.err = protocol.Request{}, false, nil
	if err := r.start(r); err != nil {
		return err
	}
	r.active = true
	return nil
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
	if r.isNull() {
		return (*Comm)(nil).fail("free", "", errNullRequest)
	}
	if !r.persistent || r.active || r.start == nil {
		return r.comm.fail("free", "", fmt.Errorf("%w: not persistent, active, or freed", ErrRequest))
	}
	r.start = nil
	if r.free != nil {
		r.free()
	}
	return nil
}

// isInactive reports whether there is nothing to wait for.
func (r *Request) isInactive() bool { return r.isNull() || r.persistent && !r.active }
