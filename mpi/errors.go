package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// What calls can end with. They come wrapped in an *Error: use errors.Is.
var (
	ErrTruncated = protocol.ErrTruncated // a message was longer than its receive buffer (MPI_ERR_TRUNCATE)
	ErrLost      = protocol.ErrLost      // a rank cannot be reached any more (MPI_ERR_PROC_FAILED)
	ErrCanceled  = protocol.ErrCanceled  // Request.Cancel
	ErrFinalized = engine.ErrClosed      // World.Finalize was called before
	ErrRank      = errors.New("no such rank")
	ErrTag       = errors.New("no such tag")
	ErrBuffer    = errors.New("no such buffer")
	ErrRoot      = errors.New("no such root")
	ErrCount     = errors.New("no such number of elements")
	ErrType      = errors.New("elements of another kind")
	ErrOp        = errors.New("no such reduction")
	ErrGroup     = errors.New("no such group")
	ErrGrid      = errors.New("no such grid")
	ErrComm      = errors.New("no such communicator")
	ErrContexts  = errors.New("too many communicators")
	ErrFreed     = errors.New("the communicator has been freed")
	ErrRequest   = errors.New("the request cannot do this")
	ErrMismatch  = coll.ErrMismatch
)

// Error is the error of a call: what was tried, and with whom.
type Error struct {
	Op   string // "send", "allreduce", ...
	Comm string // name of the communicator; "" if the handle was null
	Rank int    // in it, that called; Undefined if the handle was null
	With string // "to rank 3, tag 5", or ""
	Err  error
}

// Error returns the call, the rank that made it, and the cause.
func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	with := ""
	if e.With != "" {
		with = " " + e.With
	}
	if e.Comm == "" { // of a handle that is null
		return fmt.Sprintf("mpi: %s%s: %v", e.Op, with, e.Err)
	}
	return fmt.Sprintf("mpi: %s%s at rank %d of %s: %v", e.Op, with, e.Rank, e.Comm, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

func (c *Comm) fail(op, with string, err error) error {
	if c.isNull() {
		return &Error{Op: op, Rank: Undefined, With: with, Err: err}
	}
	e := &Error{Op: op, Comm: c.Name(), Rank: c.rank, With: with, Err: err}
	if f := c.handler.Load(); f != nil {
		(*f)(e)
	}
	return e
}

// SetErrorHandler has f called with every error of a call on the communicator, before
// the call returns it (MPI_Comm_set_errhandler); nil is nothing, as it is at first
// (MPI_ERRORS_RETURN). Communicators and windows made of it later have the same. f is
// called in the goroutine that fails, and may be called by several at once.
func (c *Comm) SetErrorHandler(f func(*Error)) {
	switch {
	case c.isNull():
	case f == nil:
		c.handler.Store(nil)
	default:
		c.handler.Store(&f)
	}
}

// Fatal is an error handler that ends the job (MPI_ERRORS_ARE_FATAL): it says what is
// wrong, calls Abort, and ends the process with status 1. What the program itself has
// cancelled, and nil, is no reason.
func (w *World) Fatal(e *Error) {
	if e == nil || errors.Is(e, ErrCanceled) || errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded) {
		return
	}
	fmt.Fprintln(os.Stderr, e)
	_ = w.Abort(1, e.Error())
	os.Exit(1)
}
