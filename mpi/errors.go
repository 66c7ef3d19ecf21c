package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/onesided"
	"github.com/softrnic/softrnic/mpi/internal/partitioned"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/pt2pt"
	"github.com/softrnic/softrnic/mpi/internal/rma"
	"github.com/softrnic/softrnic/mpi/internal/topology"
)

// Errors of calls. They are wrapped in an *Error; test for them with errors.Is.
var (
	ErrTruncated = protocol.ErrTruncated            // message longer than its receive buffer (MPI_ERR_TRUNCATE)
	ErrLost      = protocol.ErrLost                 // rank unreachable (MPI_ERR_PROC_FAILED)
	ErrCanceled  = protocol.ErrCanceled             // request canceled by Request.Cancel
	ErrFinalized = engine.ErrClosed                 // call after World.Finalize
	ErrRank      = comm.ErrRank                     // MPI_ERR_RANK
	ErrTag       = pt2pt.ErrTag                     // MPI_ERR_TAG
	ErrBuffer    = datatype.ErrLayout               // MPI_ERR_BUFFER
	ErrRoot      = collective.ErrRoot               // MPI_ERR_ROOT
	ErrCount     = datatype.ErrCount                // MPI_ERR_COUNT
	ErrType      = datatype.ErrSignature            // MPI_ERR_TYPE
	ErrOp        = datatype.ErrOp                   // MPI_ERR_OP
	ErrGroup     = errors.New("mpi: invalid group") // MPI_ERR_GROUP
	ErrGrid      = topology.ErrGrid                 // MPI_ERR_TOPOLOGY
	ErrComm      = comm.ErrComm                     // MPI_ERR_COMM
	ErrContexts  = collective.ErrContexts
	ErrFreed     = comm.ErrFreed
	ErrRequest   = collective.ErrRequest // MPI_ERR_REQUEST
	ErrMismatch  = deadlock.ErrMismatch  // the ranks make different collective calls

	ErrPartition     = partitioned.ErrPartition     // partition out of range, or ready twice
	ErrPartitionSize = partitioned.ErrPartitionSize // a partitioned send and its receive differ in size

	ErrWin    = onesided.ErrWin    // MPI_ERR_WIN
	ErrEpoch  = onesided.ErrEpoch  // MPI_ERR_RMA_SYNC
	ErrRange  = rma.ErrRange       // MPI_ERR_RMA_RANGE
	ErrAttach = onesided.ErrAttach // MPI_ERR_RMA_ATTACH
)

// Error is the error of a call, in text as "mpi: rank 0 of world: send to rank 3, tag 5: invalid
// tag ...".
type Error struct {
	Op   string // "send", "allreduce", ...
	Comm string // name of the communicator; "" if the handle was null
	Rank int    // calling rank in Comm; Undefined if the handle was null
	Args string // arguments, such as "to 3, tag 5" or "with root 0", or ""
	Err  error
}

// Error returns the rank that made the call, the call, and the cause.
func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	s := "mpi: "
	if e.Comm != "" { // not a null handle
		s += fmt.Sprintf("rank %d of %s: ", e.Rank, e.Comm)
	}
	s += e.Op
	if e.Args != "" {
		s += " " + e.Args
	}
	return s + ": " + causeText(e.Err)
}

// causeText returns the text of err without the prefix of the package, which the error around it
// has.
func causeText(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(fmt.Sprint(err), "mpi: "), ": mpi: ", ": ")
}

// Unwrap returns Err.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// fail returns the *Error of a call and passes it to the error handler. The handle may be null.
func (c *Comm) fail(op, args string, err error) error {
	if c.isNull() {
		return &Error{Op: op, Rank: Undefined, Args: args, Err: err}
	}
	e := &Error{Op: op, Comm: c.Name(), Rank: c.base.Rank, Args: args, Err: err}
	if f := c.handler.Load(); f != nil {
		(*f)(e)
	}
	return e
}

// SetErrorHandler installs f, which is called with every error of a call on the communicator
// before the call returns it (MPI_Comm_set_errhandler). A nil f removes the handler, as at
// first (MPI_ERRORS_RETURN). Communicators and windows made from c later inherit it. f runs in
// the failing goroutine, with no lock held, and may run concurrently. A panic of f reaches the
// caller of the failing call, and ends the process if that is nonblocking and collective.
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

// Null handles. A nil pointer is MPI's null handle, and so is a pointer to a zero value, except
// for Group: its zero value is the empty group (MPI_GROUP_EMPTY). Calls on a null communicator,
// window, group or message return errors (MPI 4.1, 2.5.1). Waiting for the null request does
// not (MPI 4.1, 3.7.3). World and Cart are values that embed the pointer of a communicator. Their
// zero values are null handles: the promoted methods get a nil *Comm.

var (
	errNullRequest = pt2pt.ErrNullRequest
	errNullComm    = comm.ErrNull
	errNullGroup   = fmt.Errorf("%w: null handle", ErrGroup)
	errNullWin     = fmt.Errorf("%w: null handle", ErrWin)
)

// isNull reports whether c is the null communicator (MPI_COMM_NULL).
func (c *Comm) isNull() bool { return c == nil || c.world == nil }

// checkUsable returns an error if c is null, freed or finalized.
func (c *Comm) checkUsable() error {
	switch {
	case c.isNull():
		return errNullComm
	case c.base.Freed.Load():
		return ErrFreed
	}
	return c.world.checkUsable()
}

// checkUsable returns an error if the job is finalized.
func (j *job) checkUsable() error {
	if j.Ended.Load() {
		return ErrFinalized
	}
	return nil
}

// isNull reports whether w is the null window (MPI_WIN_NULL).
func (w *Win) isNull() bool { return w == nil || w.comm == nil }
