package sdp

import (
	"errors"
	"fmt"
	"net"

	"github.com/softrnic/softrnic/sdp/flow"
	"github.com/softrnic/softrnic/sdp/protocol"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// Why a buffer is not enlarged.
var (
	errBusy   = errors.New("the last change of its size has not ended; try again when more has been read")
	errCredit = errors.New("with Credit flow control the other end enlarges it, by SetWriteBuffer")
	errRing   = fmt.Errorf("at most %d bytes", bsdh.MaxRing-1)
	errFixed  = errors.New("the send buffer is as long as Options.Buffers and BufferBytes say; only with Credit flow control messages may grow")
)

// SetReadBuffer makes the receive buffer bytes long at least. The designs with
// a ring (NIC and RDMA) have the peer go on in a longer one, while what is in
// the old one is being read. With Credit it is the peer who asks.
func (c *Conn) SetReadBuffer(bytes int) error { return c.setBuffer(c.growRing, bytes) }

// SetWriteBuffer asks the peer for receive buffers that take messages of bytes
// bytes (ChRcvBuf), which the peer may grant: with Credit only, where the size
// of buffers bounds that of messages, and up to the size of our own buffers.
func (c *Conn) SetWriteBuffer(bytes int) error { return c.setBuffer(c.growMessages, bytes) }

// setBuffer enlarges a buffer.
func (c *Conn) setBuffer(grow func(bytes int) error, bytes int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enter()
	defer c.leave()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	c.poll()
	err := c.core.Err()
	if err == nil {
		err = grow(bytes)
		c.post()
	}
	return c.opError("set", err)
}

func (c *Conn) growRing(bytes int) error {
	slack := 0
	if c.design == flow.NIC {
		slack = c.cfg.Window
	}
	switch {
	case c.design == flow.Credit:
		return errCredit
	case bytes <= len(c.regions[ringRegion].Bytes())-slack:
		return nil
	case int64(bytes) >= bsdh.MaxRing-int64(slack):
		return errRing
	case c.old != nil:
		return errBusy
	}
	mr, err := c.stack.pd.RegMR(make([]byte, bytes+slack), verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	if err != nil {
		return err
	}
	if !c.core.ChangeRing(memory(mr)) {
		_ = mr.Dereg()
		return errBusy
	}
	c.replace(ringRegion, mr)
	return nil
}

func (c *Conn) growMessages(bytes int) error {
	switch {
	case c.design != flow.Credit && bytes > c.cfg.Buffers*c.cfg.BufferBytes:
		return errFixed
	case c.design != flow.Credit || bytes <= c.core.PeerSize():
		return nil
	case !c.core.AskSize(bytes):
		return errBusy
	}
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
// change has left. That takes long. The lock is held.
func (c *Conn) resize() {
	if c.hasty {
		return
	}
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
