package cm

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// What calls can end with besides a *RejectError and the context's error. They
// come wrapped in an *Error that names the peer; test with errors.Is.
var (
	ErrClosed       = errors.New("closed")                                                               // the manager, listener or connection
	ErrUnreachable  = errors.New("the peer does not answer")                                             // however often it was asked, or cannot be sent to
	ErrPending      = errors.New("the peer's adapter has the request, and its program has not answered") // before the context ended
	ErrWithdrawn    = errors.New("the peer withdrew its request, or it expired")                         // before Accept or Reject
	ErrDisconnected = errors.New("the peer ended the connection")
	ErrInUse        = errors.New("port is in use")
	ErrTooMany      = errors.New("too many connections")
	ErrAnswered     = errors.New("the request was accepted or rejected before")
)

// Error is the error of a call: what was tried, with whom, and what came of it.
type Error struct {
	Op     string         // "dial", "accept", "listen", ...
	Peer   netip.AddrPort // address and port, if there is one
	Detail string         // what to do about it, or ""
	Err    error
}

func (e *Error) Error() string {
	s := "cm: " + e.Op
	if e.Peer.IsValid() {
		s += " " + e.Peer.String()
	}
	s += ": " + e.Err.Error()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// newUnreachable returns ErrUnreachable for the reason err, or without one if it is nil. The
// text is that of the reason alone, which names the peer's adapter.
func newUnreachable(err error) error {
	if err == nil {
		return ErrUnreachable
	}
	return unreachableError{err}
}

type unreachableError struct{ error }

func (unreachableError) Is(target error) bool { return target == ErrUnreachable }
func (e unreachableError) Unwrap() error      { return e.error }

// Reason is why a connection was refused.
type Reason = mad.Reason

// Reasons that programs tell apart most often. Package mad has all of them.
const (
	NoResources      = mad.RejNoResources      // full at the moment
	InvalidServiceID = mad.RejInvalidServiceID // nobody listens
	StaleConn        = mad.RejStaleConn        // try again with a new queue pair
	InvalidMTU       = mad.RejInvalidMTU
	ConsumerReject   = mad.RejConsumer // the program refused
	Timeout          = mad.RejTimeout  // the program neither accepted nor refused
)

// RejectError is a refusal by the peer.
type RejectError struct {
	Reason      Reason
	Info        []byte // additional information, which depends on the reason
	PrivateData []byte // what the peer's program says, with trailing zeros
}

func (e *RejectError) Error() string {
	return fmt.Sprintf("rejected: %v (%d): %s", e.Reason, uint16(e.Reason), e.Reason.Description())
}

// UDRejectError is a peer's answer that it does not serve datagrams on a port.
type UDRejectError struct {
	Status      mad.SIDRStatus
	PrivateData []byte // what the peer's program says, with trailing zeros
}

func (e *UDRejectError) Error() string {
	return fmt.Sprintf("rejected: %v (%d): %s", e.Status, uint8(e.Status), e.Status.Description())
}
