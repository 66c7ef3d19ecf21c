package acp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/acp/internal/fabric"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// The errors of package acp. Calls return an [*Error] that wraps one of them: use errors.Is.
var (
	ErrRank     = errors.New("acp: rank out of range")
	ErrRegion   = errors.New("acp: address not in a registered region")
	ErrRange    = errors.New("acp: access exceeds the region")
	ErrAlign    = errors.New("acp: misaligned address of an atomic")
	ErrLength   = errors.New("acp: invalid length")
	ErrHandle   = errors.New("acp: handle not issued yet")
	ErrBusy     = errors.New("acp: in use by an operation")
	ErrLost     = fabric.ErrLost   // The rank failed or does not respond.
	ErrAccess   = fabric.ErrAccess // The target's adapter refused an access that the rank's directory allows.
	ErrClosed   = fabric.ErrClosed // Finalize or Close was called.
	ErrFreed    = errors.New("acp: channel freed")
	ErrEnd      = errors.New("acp: end of channel: freed by the sender") // Returned by a receive: no message follows.
	ErrSlotSize = errors.New("acp: slot sizes of the channel ends differ")
	ErrMixed    = errors.New("acp: channel ends differ in ChannelOptions.Imm")
	ErrBroken   = protocol.ErrBroken // The other end sent an impossible index or reply.
	ErrRole     = errors.New("acp: operation of the other channel end")
	ErrNull     = errors.New("acp: null handle")
	ErrOptions  = errors.New("acp: invalid options")
)

// Error is the failure of a call, or of the operation that a handle names, in text as "acp: rank 0: copy 8
// bytes ...: access exceeds the region".
type Error struct {
	Rank   int    // The calling rank, or -1 for a null handle.
	Op     string // "copy", "cas8", "register", "send", ...
	Args   string // Arguments of the call, such as "8 bytes", or "".
	Handle Handle // The handle of an operation on global addresses, or None.
	Err    error
}

// Error returns the calling rank, the operation, its arguments and the cause.
func (e *Error) Error() string {
	s := "acp: "
	if e.Rank >= 0 {
		s += fmt.Sprintf("rank %d: ", e.Rank)
	}
	s += e.Op
	if e.Args != "" {
		s += " " + e.Args
	}
	return s + ": " + withoutPrefix.Replace(": " + fmt.Sprint(e.Err))[2:]
}

// withoutPrefix removes the prefixes of sentinel errors, which the error around them has.
var withoutPrefix = strings.NewReplacer(": acp: ", ": ", ": acp/data: ", ": ")

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// newError wraps err in an *Error of the call op with the arguments args.
func (p *Process) newError(op, args string, err error) error {
	if p.isNull() {
		return &Error{Rank: -1, Op: op, Args: args, Err: err}
	}
	return &Error{Rank: p.rank, Op: op, Args: args, Err: err}
}

// A null handle is a nil pointer, or a pointer to a zero value, of a Process, Channel, Chan, Region, Request
// or Group. Calls on it that return an error return ErrNull, those that return an address return Null, those
// that return a Handle return None, and the others do nothing.

// isNull reports whether p is a null handle.
func (p *Process) isNull() bool { return p == nil || p.manager == nil }

// isNull reports whether ch is a null handle.
func (ch *Channel) isNull() bool { return ch == nil || ch.p == nil }

// isNull reports whether r is a null handle.
func (r *Region) isNull() bool { return r == nil || r.p == nil }

// isNull reports whether g is a null handle.
func (g *Group) isNull() bool { return g == nil || g.p.isNull() }

// bytesChannel returns the underlying channel of c, or nil.
func (c *Chan[T]) bytesChannel() *Channel {
	if c == nil {
		return nil
	}
	return c.ch
}

// hasRank reports whether rank is a rank of the job.
func (p *Process) hasRank(rank int) bool { return !p.isNull() && rank >= 0 && rank < p.size }
