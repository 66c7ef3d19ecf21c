package mpi

import "fmt"

// Null handles. A nil pointer is MPI's null handle, and so is a pointer to a zero value, except
// for Group: its zero value is the empty group (MPI_GROUP_EMPTY). Calls on a null communicator,
// window, group or message return errors (MPI 4.1, 2.5.1). Waiting for the null request does
// not (MPI 4.1, 3.7.3). World and Cart are values that embed the pointer of a communicator. Their
// zero values are null handles: the promoted methods get a nil *Comm.

var (
	errNullRequest = fmt.Errorf("%w: null handle", ErrRequest)
	errNullComm    = fmt.Errorf("%w: null handle", ErrComm)
	errNullGroup   = fmt.Errorf("%w: null handle", ErrGroup)
	errNullWin     = fmt.Errorf("%w: null handle", ErrWin)
)

// emptyStatus returns the status of a null or inactive request (MPI 4.1, 3.7.3).
func emptyStatus() Status { return Status{Source: AnySource, Tag: AnyTag} }

// isNull reports whether c is the null communicator (MPI_COMM_NULL).
func (c *Comm) isNull() bool { return c == nil || c.world == nil }

// checkUsable returns an error if c is null, freed or finalized.
func (c *Comm) checkUsable() error {
	switch {
	case c.isNull():
		return errNullComm
	case c.freed.Load():
		return ErrFreed
	case c.world.finalized.Load():
		return ErrFinalized
	}
	return nil
}

// isNull reports whether r is the null request (MPI_REQUEST_NULL).
func (r *Request) isNull() bool { return r == nil || r.comm == nil && r.err == nil }

// isNull reports whether w is the null window (MPI_WIN_NULL).
func (w *Win) isNull() bool { return w == nil || w.comm == nil }
