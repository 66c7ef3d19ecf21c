package pt2pt

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Persistent requests are communication with fixed arguments that Start starts repeatedly (MPI
// 4.1, 3.9). A request is inactive before Start and after Wait: Wait returns at once, and
// WaitAny ignores it.

// ErrNullRequest is the error of calls on the null request.
var ErrNullRequest = fmt.Errorf("%w: null handle", collective.ErrRequest)

// SendInit makes a persistent send.
func (c *Comm) SendInit(b datatype.Buffer, dest, tag int, mode Mode) (*Request, error) {
	if err := c.checkArgs(b, dest, tag, false); err != nil {
		return nil, c.Fail("send-init", describeDest(dest, tag), err)
	}
	start := func(r *Request) error { return c.startSend(r, b, dest, tag, mode) }
	return &Request{comm: c, op: opSend, persistent: true, start: start}, nil
}

// RecvInit makes a persistent receive.
func (c *Comm) RecvInit(b datatype.Buffer, source, tag int) (*Request, error) {
	if err := c.checkArgs(b, source, tag, true); err != nil {
		return nil, c.Fail("receive-init", describeSource(source, tag), err)
	}
	start := func(r *Request) error { return c.startReceive(r, b, source, tag) }
	return &Request{comm: c, op: opReceive, persistent: true, start: start}, nil
}

// Start starts a persistent request. It returns a collective.ErrRequest if r is active, freed or
// not persistent. r is not null.
func (r *Request) Start() error {
	switch {
	case r.start == nil:
		return r.comm.Fail("start", "", fmt.Errorf("%w: not persistent, or freed", collective.ErrRequest))
	case r.active:
		return r.comm.Fail("start", "", fmt.Errorf("%w: active", collective.ErrRequest))
	}
	r.p, r.neverStarted, r.err = protocol.Request{}, false, nil
	if err := r.start(r); err != nil {
		return err
	}
	r.active = true
	return nil
}

// Free frees an inactive persistent request. It returns a collective.ErrRequest for any other
// request. r is not null.
func (r *Request) Free() error {
	if !r.persistent || r.active || r.start == nil {
		return r.comm.Fail("free", "", fmt.Errorf("%w: not persistent, active, or freed", collective.ErrRequest))
	}
	r.start = nil
	if r.free != nil {
		r.free()
	}
	return nil
}
