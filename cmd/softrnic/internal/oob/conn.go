package oob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
)

// A Conn is a connection to the peer's program.
type Conn struct {
	conn    net.Conn
	peer    net.Addr
	ctx     context.Context
	stop    func() bool
	timeout time.Duration
}

// newConn wraps conn. The end of ctx fails calls in progress.
func newConn(ctx context.Context, conn net.Conn, timeout time.Duration) *Conn {
	c := &Conn{conn: conn, peer: conn.RemoteAddr(), timeout: timeout}
	c.SetContext(ctx)
	return c
}

// SetContext replaces the context whose end fails calls in progress.
func (c *Conn) SetContext(ctx context.Context) {
	if c.stop != nil {
		c.stop()
	}
	c.ctx = ctx
	c.stop = context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) }) // long ago
}

// Dial connects to a server by name or address, from the address from unless it is the zero Addr.
// timeout bounds the dialing and each later read and write.
func Dial(ctx context.Context, from netip.Addr, host string, port int, timeout time.Duration) (*Conn, error) {
	d := net.Dialer{Timeout: timeout}
	if from.IsValid() {
		d.LocalAddr = tcpAddr(from, 0)
	}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, dialError(host, port, err)
	}
	return newConn(ctx, conn, timeout), nil
}

// dialError returns the error of a failed Dial.
func dialError(host string, port int, err error) error {
	e := &PeerError{Peer: net.JoinHostPort(host, strconv.Itoa(port)), Op: "connect", Err: err}
	if errors.Is(err, syscall.ECONNREFUSED) {
		e.Detail = "start the server first, on this port"
	}
	return e
}

// isReset reports whether the peer's system has closed the connection because its process ended.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// SetTimeout sets the timeout of later calls of Read and Write.
func (c *Conn) SetTimeout(d time.Duration) { c.timeout = d }

// Peer returns the peer's address.
func (c *Conn) Peer() net.Addr { return c.peer }

// PeerName returns the peer's address as text.
func (c *Conn) PeerName() string { return c.peer.String() }

// LocalIP returns the local address of the connection. It is the zero Addr if the peer is on this
// machine, where any two addresses of the loopback interface work.
func (c *Conn) LocalIP() netip.Addr {
	local, peer := tcpIP(c.conn.LocalAddr()), tcpIP(c.peer)
	if local == peer || local.IsLoopback() {
		return netip.Addr{}
	}
	return local
}

// tcpIP returns the address of a, or the zero Addr if it is no TCP address.
func tcpIP(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// Read fills b. op names the operation in errors. One goroutine may read while another writes.
func (c *Conn) Read(b []byte, op string) error {
	return c.readBefore(b, op, time.Now().Add(c.timeout))
}

// ReadNoTimeout is Read without a timeout.
func (c *Conn) ReadNoTimeout(b []byte, op string) error {
	return c.readBefore(b, op, time.Time{})
}

// readBefore fills b before the deadline, if that is not zero.
func (c *Conn) readBefore(b []byte, op string, deadline time.Time) error {
	n, err := 0, c.conn.SetReadDeadline(deadline)
	if err == nil && c.ctx.Err() == nil { // whose end may have set a deadline before
		n, err = io.ReadFull(c.conn, b)
	}
	if err != nil || c.ctx.Err() != nil && n < len(b) {
		return c.ioError(op, n, len(b), err)
	}
	return nil
}

// Write sends b in one call. op names the operation in errors.
func (c *Conn) Write(b []byte, op string) error {
	n, err := 0, c.conn.SetWriteDeadline(time.Now().Add(c.timeout))
	if err == nil && c.ctx.Err() == nil {
		n, err = c.conn.Write(b)
	}
	if err != nil || c.ctx.Err() != nil && n < len(b) {
		return c.ioError(op, n, len(b), err)
	}
	return nil
}

// Close closes the connection. Closing twice is safe.
func (c *Conn) Close() error {
	c.stop()
	if err := c.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

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
