package acp

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// The errors of package acp. Calls return an [*Error] that wraps one of them: use errors.Is.
var (
	ErrRank     = errors.New("no such rank")
	ErrRegion   = errors.New("no region of that rank has this address: it was never registered, or is not any more")
	ErrRange    = errors.New("beyond the end of its region")
	ErrAlign    = errors.New("the address of an atomic must be a multiple of its size")
	ErrLength   = errors.New("no such length")
	ErrHandle   = errors.New("no operation has had this handle yet")
	ErrBusy     = errors.New("an operation uses it")
	ErrLost     = fabric.ErrLost   // The rank failed or does not respond.
	ErrAccess   = fabric.ErrAccess // The target's adapter refused an access that the rank's directory allows.
	ErrClosed   = fabric.ErrClosed // Finalize or Close was called.
	ErrFreed    = errors.New("the channel has been freed")
	ErrEnd      = errors.New("the sender has freed the channel") // Returned by a receive: no message follows.
	ErrSlotSize = errors.New("the two ends of the channel have slots of different sizes")
	ErrMixed    = errors.New("one end of the channel signals by immediate data and the other one does not")
	ErrBroken   = protocol.ErrBroken // The other end sent an impossible index or reply.
	ErrRole     = errors.New("this is the other end of the channel")
	ErrNull     = errors.New("the handle is null")
	ErrOptions  = errors.New("no such options")
)

// Error is the failure of a call, or of the operation that a handle names.
type Error struct {
	Rank   int    // The calling rank, or -1 for a null handle.
	Op     string // "copy", "cas8", "register", "send", ...
	What   string // The target of the operation as text, or "".
	Handle Handle // The handle of an operation on global addresses, or None.
	Err    error
}

// Error returns the calling rank, the operation, its target and the cause.
func (e *Error) Error() string {
	s := "acp: " + e.Op
	if e.Rank >= 0 {
		s = fmt.Sprintf("acp: rank %d: %s", e.Rank, e.Op)
	}
	if e.What != "" {
		s += " " + e.What
	}
	return fmt.Sprintf("%s: %v", s, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// newError wraps err in an *Error of the call op on the target named by what.
func (p *Process) newError(op, what string, err error) error {
	if p.isNull() {
		return &Error{Rank: -1, Op: op, What: what, Err: err}
	}
	return &Error{Rank: p.rank, Op: op, What: what, Err: err}
}
