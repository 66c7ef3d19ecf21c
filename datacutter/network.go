package datacutter

import (
	"cmp"
	"context"
	"net"
)

// Network makes the connections of streams. They must be reliable, ordered, support the deadlines of
// net.Conn, and deliver data that was written before Close. Its methods may be called concurrently.
//
// A connection may hold back written data until the next call of the writer, as SDP with RDMA-based flow
// control does. So a writer that blocks elsewhere must have a Read pending on it.
type Network interface {
	// Listen starts listening. The listener's Addr().String() is passed to Dial on every host of the job.
	Listen(ctx context.Context) (net.Listener, error)

	// Dial connects to a listener.
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

// NewTCP returns the Network of package net. Its Listen listens at address, "host:port" of this host; empty
// means 127.0.0.1:0.
func NewTCP(address string) Network { return tcpNetwork{cmp.Or(address, "127.0.0.1:0")} }

// A tcpNetwork is the Network of NewTCP.
type tcpNetwork struct{ address string }

// Listen listens on a TCP port.
func (t tcpNetwork) Listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", t.address)
}

// Dial connects to host:port.
func (t tcpNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}
