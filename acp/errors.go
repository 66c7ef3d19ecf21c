package acp

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// The errors of package acp. Calls return an [*Error] that wraps one of them: use errors.Is.
var (
	ErrRank     = errors.New("rank out of range")
	ErrRegion   = errors.New("address not in a registered region")
	ErrRange    = errors.New("access exceeds the region")
	ErrAlign    = errors.New("misaligned address of an atomic")
	ErrLength   = errors.New("invalid length")
	ErrHandle   = errors.New("handle not issued yet")
	ErrBusy     = errors.New("in use by an operation")
	ErrLost     = fabric.ErrLost   // The rank failed or does not respond.
	ErrAccess   = fabric.ErrAccess // The target's adapter refused an access that the rank's directory allows.
	ErrClosed   = fabric.ErrClosed // Finalize or Close was called.
	ErrFreed    = errors.New("channel freed")
	ErrEnd      = errors.New("end of channel: freed by the sender") // Returned by a receive: no message follows.
	ErrSlotSize = errors.New("slot sizes of the channel ends differ")
	ErrMixed    = errors.New("channel ends differ in ChannelOptions.Imm")
	ErrBroken   = protocol.ErrBroken // The other end sent an impossible index or reply.
	ErrRole     = errors.New("operation of the other channel end")
	ErrNull     = errors.New("null handle")
	ErrOptions  = errors.New("invalid options")
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
