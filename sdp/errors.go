package sdp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Errors of a connection that has ended before its time. They are in the
// *net.OpError that a call returns.
var (
	// ErrReset says that the peer or its host is gone, or that one end has
	// closed with data unread, or on the way to it. It is syscall.ECONNRESET, too.
	ErrReset = protocol.ErrReset

	// ErrAborted says that the peer gave up sending, and said so (AbortConn).
	// It is syscall.ECONNRESET, too.
	ErrAborted = protocol.ErrAborted

	// ErrProtocol says that the peer sent what cannot be; the text tells what.
	ErrProtocol = protocol.ErrProtocol
)

// opError is what a call on c returns.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if errors.Is(err, ErrReset) || errors.Is(err, ErrAborted) {
		err = resetError{err}
	}
	return &net.OpError{Op: op, Net: network, Source: c.local, Addr: c.remote, Err: err}
}

// socketError returns err as the error of a setting of deadlines and buffers: package net gives it our
// address alone.
func (c *Conn) socketError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrReset) || errors.Is(err, ErrAborted) {
		err = resetError{err}
	}
	return &net.OpError{Op: "set", Net: network, Addr: c.local, Err: err}
}

// network is the name of the network in addresses and errors.
const network = "sdp"

// Who writes to a connection that is closed for writing is told as with TCP.
var errWriteShut = &os.SyscallError{Syscall: "write", Err: syscall.EPIPE}

// What package net says when nobody listens, when nobody is there, when somebody else
// listens, when that address is not ours, and of a value that cannot be.
var (
	errInUse            = &os.SyscallError{Syscall: "bind", Err: syscall.EADDRINUSE}
	errAddrNotAvailable = &os.SyscallError{Syscall: "bind", Err: syscall.EADDRNOTAVAIL}
	errRefused          = &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}
	errNoAnswer         = &os.SyscallError{Syscall: "connect", Err: syscall.ETIMEDOUT}
	errInvalid          = &os.SyscallError{Syscall: "setsockopt", Err: syscall.EINVAL}
)

// openError is the error of a dial or a listen on a network of that name, at an address if
// it is known.
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

// listenError is the error of a listen in package net's words, and the reason.
func (s *Stack) listenError(port uint16, err error) error {
	if errors.Is(err, cm.ErrInUse) {
		err = fmt.Errorf("%w: %w", errInUse, err)
	}
	var adapter netip.Addr
	if s.isOpen() {
		adapter = s.cm.Addr().Addr()
	}
	return openError("listen", network, netip.AddrPortFrom(adapter, port), err)
}

// dialError is the error of a dial in package net's words, and the reason. The adapter
// was asked for so long.
func dialError(err error, adapter netip.AddrPort, asked time.Duration) error {
	var rejected *cm.RejectError
	var refused *verbs.RefusedError
	switch {
	case errors.As(err, &refused):
		return trimAddress(err)
	case errors.Is(err, cm.ErrUnreachable), errors.As(err, &rejected) && rejected.Reason == cm.Timeout:
		return timeoutError{fmt.Errorf("%w: %w", errNoAnswer, err)}
	case rejected != nil:
		return fmt.Errorf("%w: %w", errRefused, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return wrapTimeout(noAnswerError(err, adapter, asked))
	}
	return err
}

// noAnswerError is the error of a dial that the caller's context has ended: it could have
// been too short, nobody be there, or the program there not accept.
func noAnswerError(err error, adapter netip.AddrPort, asked time.Duration) error {
	err = trimAddress(err)
	who := "no answer from the adapter"
	if errors.Is(err, cm.ErrPending) {
		who = "no answer from the program behind the adapter"
	}
	return fmt.Errorf("%s at %v within %v: %w", who, adapter, asked.Round(time.Millisecond), err)
}

// trimAddress takes off what the manager says of the address, which the error of the
// call says already.
func trimAddress(err error) error {
	if e := (*cm.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// notAskedError is the error of a dial whose context had ended before the peer was asked.
func notAskedError(err error, adapter netip.AddrPort) error {
	return wrapTimeout(fmt.Errorf("the adapter at %v was not asked: %w", adapter, err))
}

// wrapTimeout is the error of what a context has ended, a timeout if that was its deadline.
func wrapTimeout(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return timeoutError{err}
	}
	return err
}

// timeoutError is an error of which net.Error's Timeout is true.
type timeoutError struct{ error }

func (timeoutError) Timeout() bool   { return true }
func (e timeoutError) Unwrap() error { return e.error }

// resetError is an error of a connection that the peer, or its host, has ended: the
// same to errors.Is as with TCP.
type resetError struct{ error }

func (resetError) Is(target error) bool { return target == syscall.ECONNRESET }
func (e resetError) Unwrap() error      { return e.error }
