package oob

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// Conn is a connection to the other program.
type Conn struct {
	conn    net.Conn
	peer    net.Addr
	ctx     context.Context
	stop    func() bool
	timeout time.Duration
}

// newConn takes over a connection; the end of ctx ends what is under way on it.
func newConn(ctx context.Context, conn net.Conn, patience time.Duration) *Conn {
	c := &Conn{conn: conn, peer: conn.RemoteAddr(), timeout: patience}
	c.SetContext(ctx)
	return c
}

// SetContext makes ctx the one whose end ends what is under way.
func (c *Conn) SetContext(ctx context.Context) {
	if c.stop != nil {
		c.stop()
	}
	c.ctx = ctx
	c.stop = context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) }) // long ago
}

// Dial connects to a server, by name or address, from an address of ours unless
// that is the zero Addr. Patience bounds the dialing, and each read and write
// after it.
func Dial(ctx context.Context, from netip.Addr, host string, port int, patience time.Duration) (*Conn, error) {
	d := net.Dialer{Timeout: patience}
	if from.IsValid() {
		d.LocalAddr = tcpAddr(from, 0)
	}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, dialError(host, port, err)
	}
	return newConn(ctx, conn, patience), nil
}

func dialError(host string, port int, err error) error {
	e := &PeerError{Peer: net.JoinHostPort(host, strconv.Itoa(port)), Op: "connect", Err: err}
	if errors.Is(err, syscall.ECONNREFUSED) {
		e.Detail = "start the server first, on this port"
	}
	return e
}

// isReset reports whether the peer's system says that its program is gone.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// SetTimeout changes how long each Read and Write to come may take.
func (c *Conn) SetTimeout(d time.Duration) { c.timeout = d }

// Peer is the other program's address.
func (c *Conn) Peer() net.Addr { return c.peer }

// PeerName is Peer as text.
func (c *Conn) PeerName() string { return c.peer.String() }

// LocalIP is our address on the way to the peer. It is not valid if the peer is
// on this machine: then any two addresses of the loopback interface do.
func (c *Conn) LocalIP() netip.Addr {
	local, peer := tcpIP(c.conn.LocalAddr()), tcpIP(c.peer)
	if local == peer || local.IsLoopback() {
		return netip.Addr{}
	}
	return local
}

func tcpIP(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// Read fills b; doing says what that means. One goroutine may read while
// another writes.
func (c *Conn) Read(b []byte, doing string) error {
	return c.readBefore(b, doing, time.Now().Add(c.timeout))
}

// ReadNoTimeout is Read that takes as long as it takes.
func (c *Conn) ReadNoTimeout(b []byte, doing string) error {
	return c.readBefore(b, doing, time.Time{})
}

func (c *Conn) readBefore(b []byte, doing string, deadline time.Time) error {
	n, err := 0, c.conn.SetReadDeadline(deadline)
	if err == nil && c.ctx.Err() == nil { // whose end may have set a deadline before
		n, err = io.ReadFull(c.conn, b)
	}
	if err != nil || c.ctx.Err() != nil && n < len(b) {
		return c.ioError(doing, n, len(b), err)
	}
	return nil
}

// Write sends b, in one piece.
func (c *Conn) Write(b []byte, doing string) error {
	n, err := 0, c.conn.SetWriteDeadline(time.Now().Add(c.timeout))
	if err == nil && c.ctx.Err() == nil {
		n, err = c.conn.Write(b)
	}
	if err != nil || c.ctx.Err() != nil && n < len(b) {
		return c.ioError(doing, n, len(b), err)
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
