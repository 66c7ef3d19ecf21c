package sdp

import (
	"errors"
	"net"

	"github.com/softrnic/softrnic/sdp/flow"
	"github.com/softrnic/softrnic/sdp/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// errSize is for buffers that the flow control does not enlarge.
var errSize = errors.New("the buffer is not enlarged: it is not shorter than that, a change is under way, or it is the other end's to change (see SetWriteBuffer)")

// SetReadBuffer makes the receive buffer bytes long at least. The designs with
// a ring (NIC and RDMA) have the peer go on in a longer one, while what is in
// the old one is being read. With Credit it is the peer who asks.
func (c *Conn) SetReadBuffer(bytes int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.leave()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	c.poll()
	if c.design == flow.Credit || c.old != nil {
		return c.opError("set", errSize)
	}
	if c.design == flow.NIC {
		bytes += c.cfg.Window
	}
	mr, err := c.stack.pd.RegMR(make([]byte, bytes), verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	if err != nil {
		return c.opError("set", err)
	}
	if !c.core.ChangeRing(memory(mr)) {
		_ = mr.Dereg()
		return c.opError("set", errSize)
	}
	c.replace(ringRegion, mr)
	c.post()
	return nil
}

// SetWriteBuffer asks the peer for receive buffers that take messages of bytes
// bytes (ChRcvBuf), which the peer may grant: with Credit only, where the size
// of buffers bounds that of messages, and up to the size of our own buffers.
func (c *Conn) SetWriteBuffer(bytes int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.leave()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	c.poll()
	if !c.core.AskSize(bytes) {
		return c.opError("set", errSize)
	}
	c.post()
	return nil
}

// PeerBuffer is how many bytes the longest message with Credit may have by now.
func (c *Conn) PeerBuffer() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.poll()
	return c.core.PeerSize()
}

// resize grants the peer larger buffers if it asks, and frees memory that a
// change has left. The lock is held.
func (c *Conn) resize() {
	if data := c.core.ResizeWanted(); data > 0 {
		mr, err := c.stack.pd.RegMR(make([]byte, c.cfg.ResizeBytes(data)), verbs.AccessLocalWrite)
		switch {
		case err != nil:
			c.core.Resize(protocol.Memory{}, 0)
		case c.old == nil && c.core.Resize(memory(mr), data):
			c.replace(slotsRegion, mr)
		default:
			_ = mr.Dereg()
			c.core.Resize(protocol.Memory{}, 0)
		}
		c.post()
	}
	if c.old != nil && !c.core.Resizing() && !c.core.ChangingRing() {
		_ = c.old.Dereg()
		c.old = nil
	}
}

// Conn.regions, in the order in which they are made.
const (
	sendRegion = iota
	slotsRegion
	ringRegion
)

// replace puts a region in the place of one that is in use for a while yet.
func (c *Conn) replace(i int, mr verbs.MR) { c.old, c.regions[i] = c.regions[i], mr }
