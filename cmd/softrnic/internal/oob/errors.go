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
	ErrSilent   = errors.New("it stays silent")
	ErrGone     = errors.New("it has closed the connection")
	ErrNonsense = errors.New("it does not speak this protocol")
	ErrLate     = errors.New("another client was first")
)

// PeerError is what went wrong with whom while doing what.
type PeerError struct {
	Peer   string // its address
	Doing  string // "read its address"
	Err    error  // one of the above, the context's end, or the system's
	Detail string // what came, and what to do; or ""
}

func (e *PeerError) Error() string {
	s := fmt.Sprintf("peer %s: %s: %v", e.Peer, e.Doing, e.Err)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

func (e *PeerError) Unwrap() error { return e.Err }

// Nonsense is the error of a message that came whole and means nothing.
func Nonsense(peer net.Addr, doing, format string, args ...any) error {
	return &PeerError{peer.String(), doing, ErrNonsense, fmt.Sprintf(format, args...)}
}

// failure tells why a read or write of n bytes ended after done.
func (c *Conn) failure(doing string, done, n int, err error) error {
	e := &PeerError{Peer: c.peer.String(), Doing: doing, Err: err}
	var timeout net.Error
	switch {
	case c.ctx.Err() != nil:
		e.Err = context.Cause(c.ctx)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		e.Err = ErrSilent
		e.Detail = fmt.Sprintf("%d of %d bytes within %v", done, n, c.patience)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), reset(err):
		e.Err = ErrGone
		e.Detail = fmt.Sprintf("after %d of %d bytes; its own output says why", done, n)
	}
	return e
}
