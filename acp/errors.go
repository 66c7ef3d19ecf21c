package acp

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// What can be wrong. Errors of calls have more words around these: use errors.Is.
var (
	ErrRank     = errors.New("no such rank")
	ErrRegion   = errors.New("no region of that rank has this address: it was never registered, or is not any more")
	ErrRange    = errors.New("beyond the end of its region")
	ErrAlign    = errors.New("the address of an atomic must be a multiple of its size")
	ErrLength   = errors.New("no such length")
	ErrHandle   = errors.New("no operation has had this handle yet")
	ErrBusy     = errors.New("an operation uses it")
	ErrLost     = fabric.ErrLost   // the rank is gone, or does not answer
	ErrAccess   = fabric.ErrAccess // although the directory of its rank allows it
	ErrClosed   = fabric.ErrClosed // Finalize was called
	ErrFreed    = errors.New("the channel has been freed")
	ErrEnd      = errors.New("the sender has freed the channel") // to a receive: no message follows
	ErrSlotSize = errors.New("the two ends of the channel have slots of different sizes")
	ErrMixed    = errors.New("one end of the channel signals by immediate data and the other one does not")
	ErrBroken   = protocol.ErrBroken // the other end tells something impossible
	ErrRole     = errors.New("this is the other end of the channel")
	ErrNull     = errors.New("the handle is null")
	ErrOptions  = errors.New("no such options")
)

// Error says what has failed: the call, or the operation that a handle stands for.
type Error struct {
	Rank   int    // whose call it was, -1 if the handle was null
	Op     string // "copy", "cas8", "register", "send", ...
	What   string // of what, to where, in words; or ""
	Handle Handle // of an operation on global addresses, or None
	Err    error
}

// Error says who has called what, and what came of it.
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

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// newError makes an error of a call.
func (p *Process) newError(op, what string, err error) error {
	if p.isNull() {
		return &Error{Rank: -1, Op: op, What: what, Err: err}
	}
	return &Error{Rank: p.rank, Op: op, What: what, Err: err}
}
