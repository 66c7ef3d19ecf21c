package oob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// Errors of a peer. They are wrapped in a *PeerError.
var (
	ErrTimeout    = errors.New("peer timed out")
	ErrPeerClosed = errors.New("peer closed the connection")
	ErrProtocol   = errors.New("peer violated the protocol")
	ErrNotFirst   = errors.New("another client was accepted first")
)

// A PeerError is an error of the peer or of the connection to it.
type PeerError struct {
	Peer   string // address
	Op     string // "read its address"
	Err    error  // one of the above, the cause of the context's end, or an error of the system
	Detail string // values and advice, or ""
}

// Error implements error.
func (e *PeerError) Error() string {
	s := fmt.Sprintf("peer %s: %s: %v", e.Peer, e.Op, e.Err)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// ProtocolErrorf returns an error about a complete message with invalid content.
func ProtocolErrorf(peer net.Addr, op, format string, args ...any) error {
	return &PeerError{peer.String(), op, ErrProtocol, fmt.Sprintf(format, args...)}
}

// ioError returns the error of a read or write of n bytes that ended after done bytes.
func (c *Conn) ioError(op string, done, n int, err error) error {
	e := &PeerError{Peer: c.peer.String(), Op: op, Err: err}
	var timeout net.Error
	switch {
	case c.ctx.Err() != nil:
		e.Err = context.Cause(c.ctx)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		e.Err = ErrTimeout
		e.Detail = fmt.Sprintf("%d of %d bytes within %v", done, n, c.timeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isReset(err):
		e.Err = ErrPeerClosed
		e.Detail = fmt.Sprintf("after %d of %d bytes; see the peer's output", done, n)
	}
	return e
}
