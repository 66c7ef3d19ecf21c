package datacutter

import (
	"context"
	"net"
)

// Network makes the connections that streams run over: reliable, in order, with
// the deadlines of net.Conn, and a Close that lets the peer read what was
// written before. Its methods can be called at the same time.
//
// A connection may hold back what was written until the next call of the writer,
// as SDP with RDMA-based flow control does: whoever waits for something else
// then has a Read of it waiting, too.
type Network interface {
	// Listen begins to take connections. What the listener's address prints
	// is what Dial wants on every host of the job.
	Listen(ctx context.Context) (net.Listener, error)

	// Dial connects to a listener.
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

// TCP is the Network of package net.
type TCP struct {
	Address string // to listen on; empty means 127.0.0.1:0
}

// Listen listens on a TCP port.
func (t TCP) Listen(ctx context.Context) (net.Listener, error) {
	addr := t.Address
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", addr)
}

// Dial connects to host:port.
func (t TCP) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}
