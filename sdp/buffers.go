package sdp

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// Why a buffer is not enlarged.
var (
	errResizeBusy = errors.New("the last change of its size has not ended; try again when more has been read")
	errCreditRing = errors.New("with Credit flow control the other end enlarges it, by SetWriteBuffer")
	errFixedSend  = errors.New("the send buffer is as long as Options.Buffers and BufferBytes say; only with Credit flow control messages may grow")
)

// SetReadBuffer makes the receive buffer bytes long at least. The designs with
// a ring (NIC and RDMA) have the peer go on in a longer one, while what is in
// the old one is being read. With Credit it is the peer who asks. What cannot be is
// syscall.EINVAL.
func (c *Conn) SetReadBuffer(bytes int) error { return c.setBuffer(c.growRing, bytes) }

// SetWriteBuffer asks the peer for receive buffers that take messages of bytes
// bytes (ChRcvBuf), which the peer may grant: with Credit only, where the size
// of buffers bounds that of messages, and up to the size of our own buffers. What
// cannot be is syscall.EINVAL.
func (c *Conn) SetWriteBuffer(bytes int) error { return c.setBuffer(c.growMessages, bytes) }

// setBuffer enlarges a buffer.
func (c *Conn) setBuffer(grow func(bytes int) error, bytes int) error {
	if !c.isOpen() {
		return syscall.EINVAL
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterCall()
	defer c.exitCall()
	if c.closed {
		return c.socketError(net.ErrClosed)
	}
	c.pollCompletions()
	err := c.core.Err()
	if most := bsdh.MaxRing - 1 - int64(c.cfg.RingSlack()); err == nil && (bytes < 0 || int64(bytes) > most) {
		err = fmt.Errorf("%w: a buffer of %d bytes: 0 to %d", errInvalid, bytes, most)
	}
	if err == nil {
		err = grow(bytes)
		c.postPending()
	}
	return c.socketError(err)
}

func (c *Conn) growRing(bytes int) error {
	switch {
	case c.flowControl == flow.Credit && bytes <= c.cfg.BufferBytes:
		return nil
	case c.flowControl == flow.Credit:
		return errCreditRing
	case bytes <= c.core.RingSize():
		return nil
	case c.readBuffer > 0:
		return errResizeBusy
	case c.oldRegion.MR != nil: // it became longer by itself, and does so once more behind that
		c.readBuffer = bytes
		return nil
	}
	if err := c.changeRing(bytes); err != nil {
		return err
	}
	c.readBuffer = bytes
	return nil
}

// changeRing has the peer go on in a ring for so many bytes.
func (c *Conn) changeRing(bytes int) error {
	ring, err := c.stack.newRegion(bytes+c.cfg.RingSlack(), verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	if err != nil {
		return err
	}
	if !c.core.ChangeRing(ring.protocolMemory()) {
		ring.deregister()
		return errResizeBusy
	}
	c.replaceRegion(ringRegion, ring)
	return nil
}

func (c *Conn) growMessages(bytes int) error {
	switch {
	case c.flowControl != flow.Credit && bytes > c.cfg.Buffers*c.cfg.BufferBytes:
		return errFixedSend
	case c.flowControl != flow.Credit || bytes <= c.core.PeerBufferBytes():
		return nil
	case !c.core.RequestPeerSize(bytes):
		return errResizeBusy
	}
	return nil
}

// PeerBuffer is how many bytes the longest message with Credit may have by now.
func (c *Conn) PeerBuffer() int {
	if !c.isOpen() {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pollCompletions()
	return c.core.PeerBufferBytes()
}

// resizePending reports whether there is something for resize to do now.
func (c *Conn) resizePending() bool {
	switch {
	case c.core.RequestedBufferBytes() > 0:
		return true
	case c.oldRegion.MR != nil:
		return c.oldRegionUnused()
	}
	return c.core.RingWanted() > 0
}

// oldRegionUnused reports whether the memory that the last change has left is not in use any more.
func (c *Conn) oldRegionUnused() bool { return !c.core.Resizing() && !c.core.ChangingRing() }

// applyResize grants the peer larger buffers if it asks, and a longer ring if ours has been too
// small, and frees memory that a change has left. That takes long. The lock is held.
func (c *Conn) applyResize() {
	if c.inHandler || !c.resizePending() {
		return
	}
	if data := c.core.RequestedBufferBytes(); data > 0 {
		slots, err := c.stack.newRegion(c.cfg.ResizeBytes(data), verbs.AccessLocalWrite)
		switch {
		case err != nil:
			c.core.GrantResize(protocol.Memory{}, 0)
		case c.oldRegion.MR == nil && c.core.GrantResize(slots.protocolMemory(), data):
			c.replaceRegion(slotsRegion, slots)
		default:
			slots.deregister()
			c.core.GrantResize(protocol.Memory{}, 0)
		}
		c.postPending()
	}
	if c.oldRegion.MR != nil && c.oldRegionUnused() {
		c.oldRegion.deregister()
		c.oldRegion = region{}
		if c.readBuffer <= c.core.RingSize() {
			c.readBuffer = 0
		}
	}
	if n := max(c.readBuffer, c.core.RingWanted()); n > 0 && c.oldRegion.MR == nil {
		if c.changeRing(n) != nil { // no memory, or the peer has ended
			c.readBuffer = 0
			c.core.KeepRing()
		}
		c.postPending()
	}
}
