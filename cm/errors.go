package cm

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/softrnic/softrnic/wire/mad"
)

// Errors that calls return besides a *RejectError and the context's error. They are wrapped in an
// *Error that names the peer; test with errors.Is.
var (
	ErrClosed       = errors.New("cm: closed")                                    // the manager, listener or connection is closed
	ErrUnreachable  = errors.New("cm: peer unreachable")                          // no reply to any transmission, or the system refuses to send to the peer
	ErrPending      = errors.New("cm: request pending at the peer's application") // the peer's adapter sent an MRA before the context was done
	ErrWithdrawn    = errors.New("cm: request withdrawn or expired")              // before Accept or Reject
	ErrDisconnected = errors.New("cm: disconnected by peer")
	ErrInUse        = errors.New("cm: port in use")
	ErrTooMany      = errors.New("cm: too many connections")
	ErrAnswered     = errors.New("cm: request already accepted or rejected")
)

// An Error reports the operation, the peer and the cause of a failed call, in text as
// "cm: 192.0.2.1:7471: dial: peer unreachable".
type Error struct {
	Op     string         // "dial", "accept", "listen", ...
	Peer   netip.AddrPort // object of the operation: the peer's address and port, if any
	Detail string         // advice, or ""
	Err    error
}

// Error implements error.
func (e *Error) Error() string {
	s := "cm: "
	if e.Peer.IsValid() {
		s += e.Peer.String() + ": "
	}
	s += e.Op + ": " + strings.TrimPrefix(e.Err.Error(), "cm: ") // the sentinels have the prefix, too
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// newUnreachable returns an error that is ErrUnreachable and wraps err, or ErrUnreachable itself
// if err is nil. The text is that of err, which names the peer's adapter.
func newUnreachable(err error) error {
	if err == nil {
		return ErrUnreachable
	}
	return unreachableError{err}
}

type unreachableError struct{ error }

func (unreachableError) Is(target error) bool { return target == ErrUnreachable }
func (e unreachableError) Unwrap() error      { return e.error }

// A Reason is the reason code of a REJ.
type Reason = mad.Reason

// Common reasons of a rejection. Package mad has the complete list.
const (
	NoResources      = mad.RejNoResources      // temporarily out of resources
	InvalidServiceID = mad.RejInvalidServiceID // no listener on the port
	StaleConn        = mad.RejStaleConn        // retry with a new queue pair
	InvalidMTU       = mad.RejInvalidMTU
	ConsumerReject   = mad.RejConsumer // the application rejected the request
	Timeout          = mad.RejTimeout  // the application neither accepted nor rejected the request
)

// A RejectError reports a REJ from the peer.
type RejectError struct {
	Reason      Reason
	Info        []byte // additional information; its format depends on Reason
	PrivateData []byte // sent by the peer's application, including trailing zeros
}

// Error implements error.
func (e *RejectError) Error() string {
	return fmt.Sprintf("rejected: %v (%d): %s", e.Reason, uint16(e.Reason), e.Reason.Description())
}

// A UDStatus is the status of a SIDR_REP. Package mad has the complete list.
type UDStatus = mad.SIDRStatus

// UDReject is the status of a request that the application rejected.
const UDReject = mad.SIDRReject

// A UDRejectError reports a SIDR_REP with a status other than success.
type UDRejectError struct {
	Status      UDStatus
	PrivateData []byte // sent by the peer's application, including trailing zeros
}

// Error implements error.
func (e *UDRejectError) Error() string {
	return fmt.Sprintf("rejected: %v (%d): %s", e.Status, uint8(e.Status), e.Status.Description())
}
