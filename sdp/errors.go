package sdp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Errors of a connection that has ended abnormally. They are wrapped in the *net.OpError of a
// call.
var (
	// ErrReset reports that the peer or its host has failed, or that one side closed the
	// connection with data unread or in flight. It matches syscall.ECONNRESET.
	ErrReset = errReset

	// ErrAborted reports that the peer aborted its stream (AbortConn). It matches
	// syscall.ECONNRESET.
	ErrAborted = errAborted

	// ErrProtocol reports a protocol violation by the peer, with details in the text.
	ErrProtocol = errProtocol
)

// The sentinels are those of the state machine, so that its errors need no conversion.
var errReset, errAborted, errProtocol = protocol.ErrReset, protocol.ErrAborted, protocol.ErrProtocol

// errWriteShut is the error of a Write after CloseWrite, the same as with TCP.
var errWriteShut = &os.SyscallError{Syscall: "write", Err: syscall.EPIPE}

// Errors with the system calls and numbers that package net reports in the same situations.
var (
	errInUse   = &os.SyscallError{Syscall: "bind", Err: syscall.EADDRINUSE}
	errRefused = &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}
	errNoReply = &os.SyscallError{Syscall: "connect", Err: syscall.ETIMEDOUT}
	errInvalid = &os.SyscallError{Syscall: "setsockopt", Err: syscall.EINVAL}
)

// openError wraps the error of a dial or listen on network name, at the address at if it is
// known.
func openError(op, name string, at netip.AddrPort, err error) error {
	e := &net.OpError{Op: op, Net: network, Err: err}
	if _, unknown := err.(net.UnknownNetworkError); unknown {
		e.Net = name
	}
	if at.IsValid() {
		e.Addr = Addr{at}
	}
	return e
}

// listenError wraps the error of a listen with the system error of package net.
func listenError(at netip.AddrPort, err error) error {
	if errors.Is(err, cm.ErrInUse) {
		err = fmt.Errorf("%w: %w", errInUse, err)
	}
	return openError("listen", network, at, err)
}

// dialError wraps the error of a dial with the system error of package net. elapsed is the time
// since the first request.
func dialError(err error, adapter netip.AddrPort, elapsed time.Duration) error {
	var rejected *cm.RejectError
	var refused *verbs.RefusedError
	switch {
	case errors.As(err, &refused):
		return trimAddress(err)
	case errors.Is(err, cm.ErrUnreachable), errors.As(err, &rejected) && rejected.Reason == cm.Timeout:
		return timeoutError{fmt.Errorf("%w: %w", errNoReply, err)}
	case rejected != nil:
		return fmt.Errorf("%w: %w", errRefused, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return wrapTimeout(noReplyError(err, adapter, elapsed))
	}
	return err
}

// noReplyError wraps the error of a dial whose context was done before the reply.
func noReplyError(err error, adapter netip.AddrPort, elapsed time.Duration) error {
	err = trimAddress(err)
	event := "no reply from the adapter"
	if errors.Is(err, cm.ErrPending) {
		event = "no reply from the application behind the adapter"
	}
	return fmt.Errorf("%s at %v within %v: %w", event, adapter, elapsed.Round(time.Millisecond), err)
}

// trimAddress removes the *cm.Error around err, whose address the *net.OpError repeats.
func trimAddress(err error) error {
	if e := (*cm.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// unsentError wraps the error of a dial whose context was done before the first request.
func unsentError(err error, adapter netip.AddrPort) error {
	return wrapTimeout(fmt.Errorf("no request sent to the adapter at %v: %w", adapter, err))
}

// wrapTimeout makes err a timeout in the sense of net.Error if it is context.DeadlineExceeded.
func wrapTimeout(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return timeoutError{err}
	}
	return err
}

// A timeoutError is an error with Timeout() true.
type timeoutError struct{ error }

func (timeoutError) Timeout() bool { return true }

func (e timeoutError) Unwrap() error { return e.error }

// markReset makes the error of a connection match syscall.ECONNRESET if it ended abnormally.
func markReset(err error) error {
	if errors.Is(err, ErrReset) || errors.Is(err, ErrAborted) {
		return resetError{err}
	}
	return err
}

// A resetError is the error of a connection that the peer or its host has ended. It matches
// syscall.ECONNRESET, as with TCP.
type resetError struct{ error }

func (resetError) Is(target error) bool { return target == syscall.ECONNRESET }

func (e resetError) Unwrap() error { return e.error }
