package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// Errors of calls. They are wrapped in an *Error; test for them with errors.Is.
var (
	ErrTruncated = protocol.ErrTruncated // message longer than its receive buffer (MPI_ERR_TRUNCATE)
	ErrLost      = protocol.ErrLost      // rank unreachable (MPI_ERR_PROC_FAILED)
	ErrCanceled  = protocol.ErrCanceled  // request canceled by Request.Cancel
	ErrFinalized = engine.ErrClosed      // call after World.Finalize
	ErrRank      = errors.New("invalid rank")
	ErrTag       = errors.New("invalid tag")
	ErrBuffer    = errors.New("invalid buffer")
	ErrRoot      = errors.New("invalid root")
	ErrCount     = errors.New("invalid count")
	ErrType      = errors.New("datatype mismatch")
	ErrOp        = errors.New("invalid reduction operation")
	ErrGroup     = errors.New("invalid group")
	ErrGrid      = errors.New("invalid topology")
	ErrComm      = errors.New("invalid communicator")
	ErrContexts  = errors.New("too many communicators")
	ErrFreed     = errors.New("communicator freed")
	ErrRequest   = errors.New("invalid request")
	ErrMismatch  = coll.ErrMismatch
)

// Errors of windows. They come wrapped in an *Error.
var (
	ErrWin    = errors.New("invalid window")            // MPI_ERR_WIN
	ErrEpoch  = errors.New("wrong RMA synchronization") // MPI_ERR_RMA_SYNC
	ErrRange  = rma.ErrRange                            // MPI_ERR_RMA_RANGE
	ErrAttach = errors.New("invalid attach or detach")  // MPI_ERR_RMA_ATTACH
)

// Error is the error of a call.
type Error struct {
	Op   string // "send", "allreduce", ...
	Comm string // name of the communicator; "" if the handle was null
	Rank int    // calling rank in Comm; Undefined if the handle was null
	With string // peer and arguments, such as "to rank 3, tag 5", or ""
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
	cause := strings.TrimPrefix(fmt.Sprint(e.Err), "mpi: ")
	if e.Comm == "" { // null handle
		return fmt.Sprintf("mpi: %s%s: %s", e.Op, with, cause)
	}
	return fmt.Sprintf("mpi: %s%s at rank %d of %s: %s", e.Op, with, e.Rank, e.Comm, cause)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// fail returns the *Error of a call and passes it to the error handler. The handle may be null.
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

// SetErrorHandler installs f, which is called with every error of a call on the communicator
// before the call returns it (MPI_Comm_set_errhandler). A nil f removes the handler, as at
// first (MPI_ERRORS_RETURN). Communicators and windows made from c later inherit it. f runs in
// the failing goroutine and may run concurrently.
func (c *Comm) SetErrorHandler(f func(*Error)) {
	switch {
	case c.isNull():
	case f == nil:
		c.handler.Store(nil)
	default:
		c.handler.Store(&f)
	}
}

// Fatal is an error handler that aborts the job (MPI_ERRORS_ARE_FATAL): it prints e on standard
// error, calls Abort and exits with status 1. It ignores nil and errors of cancellation.
func (w World) Fatal(e *Error) {
	if e == nil || errors.Is(e, ErrCanceled) || errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded) {
		return
	}
	fmt.Fprintln(os.Stderr, e)
	_ = w.Abort(1, e.Error())
	os.Exit(1)
}
