package dcbench

import (
	"bufio"
	"context"
	"net"
	"sync"

	"github.com/softrnic/softrnic/datacutter"
)

// bufferedSize is the size of the writer's buffer of BufferedTCP: that of the 8 buffers of 8 KiB
// that SDP has in the experiments.
const bufferedSize = 64 << 10

// A bufferedNetwork is a datacutter.Network whose dialed connections, on which the units of a
// stream travel, have a buffered writer.
type bufferedNetwork struct{ datacutter.Network }

// Dial implements datacutter.Network.
func (n bufferedNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := n.Network.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &bufferedConn{Conn: conn, w: bufio.NewWriterSize(conn, bufferedSize)}, nil
}

// A bufferedConn sends written data when its buffer is full, before a Read, and before Close.
// Data may therefore stay behind until one of these calls, which a pipeline of filters allows: see
// "Networks that hold data back" in docs/datacutter.md.
type bufferedConn struct {
	net.Conn
	mu sync.Mutex
	w  *bufio.Writer
}

// Write implements net.Conn.
func (c *bufferedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.w.Write(b)
}

// Read implements net.Conn.
func (c *bufferedConn) Read(b []byte) (int, error) {
	if err := c.flush(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Close implements net.Conn. An error of flushing is that of a connection that is closed anyway.
func (c *bufferedConn) Close() error {
	_ = c.flush()
	return c.Conn.Close()
}

func (c *bufferedConn) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.w.Flush()
}
