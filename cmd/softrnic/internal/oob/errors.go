package oob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// What a peer can do wrong. They come wrapped in a *PeerError.
var (
	ErrTimeout    = errors.New("it stays silent")
	ErrPeerClosed = errors.New("it has closed the connection")
	ErrProtocol   = errors.New("it does not speak this protocol")
	ErrNotFirst   = errors.New("another client was first")
)

// PeerError is what went wrong with whom while doing what.
type PeerError struct {
	Peer   string // its address
	Op     string // "read its address"
	Err    error  // one of the above, the context's end, or the system's
	Detail string // what came, and what to do; or ""
}

func (e *PeerError) Error() string {
	s := fmt.Sprintf("peer %s: %s: %v", e.Peer, e.Op, e.Err)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

func (e *PeerError) Unwrap() error { return e.Err }

// ProtocolErrorf is the error of a message that came whole and means nothing.
func ProtocolErrorf(peer net.Addr, doing, format string, args ...any) error {
	return &PeerError{peer.String(), doing, ErrProtocol, fmt.Sprintf(format, args...)}
}

// ioError tells why a read or write of n bytes ended after done.
func (c *Conn) ioError(doing string, done, n int, err error) error {
	e := &PeerError{Peer: c.peer.String(), Op: doing, Err: err}
	var timeout net.Error
	switch {
	case c.ctx.Err() != nil:
		e.Err = context.Cause(c.ctx)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		e.Err = ErrTimeout
		e.Detail = fmt.Sprintf("%d of %d bytes within %v", done, n, c.timeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isReset(err):
		e.Err = ErrPeerClosed
		e.Detail = fmt.Sprintf("after %d of %d bytes; its own output says why", done, n)
	}
	return e
}
