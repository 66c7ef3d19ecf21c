package sdp

import (
	"errors"

	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Reasons for refusing a larger buffer.
var (
	errResizeBusy = errors.New("last resize incomplete; retry after reading")
	errCreditRing = errors.New("Credit flow control: receive buffer grows by the peer's SetWriteBuffer")
	errFixedSend  = errors.New("send buffer fixed by Options.Buffers and BufferBytes; only Credit flow control can grow messages")
)

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
	case c.oldRegion.MR != nil: // the ring has grown by itself; it grows again when that is complete
		c.readBuffer = bytes
		return nil
	}
	if err := c.changeRing(bytes); err != nil {
		return err
	}
	c.readBuffer = bytes
	return nil
}

// changeRing makes the peer continue in a ring with a capacity of bytes.
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

// resizePending reports whether applyResize has work to do.
func (c *Conn) resizePending() bool {
	switch {
	case c.core.RequestedBufferBytes() > 0:
		return true
	case c.oldRegion.MR != nil:
		return c.oldRegionUnused()
	}
	return c.core.RingWanted() > 0
}

// oldRegionUnused reports whether the memory replaced by the last resize is no longer in use.
func (c *Conn) oldRegionUnused() bool { return !c.core.Resizing() && !c.core.ChangingRing() }

// applyResize grants the peer's request for larger buffers, grows the receive ring if it was too
// short, and frees replaced memory. Registering memory is slow. c.mu must be held; the caller
// posts the requests.
func (c *Conn) applyResize() {
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
	}
	if c.oldRegion.MR != nil && c.oldRegionUnused() {
		c.oldRegion.deregister()
		c.oldRegion = region{}
		if c.readBuffer <= c.core.RingSize() {
			c.readBuffer = 0
		}
	}
	if n := max(c.readBuffer, c.core.RingWanted()); n > 0 && c.oldRegion.MR == nil {
		if c.changeRing(n) != nil { // out of memory, or the peer has closed
			c.readBuffer = 0
			c.core.KeepRing()
		}
	}
}

// replaceRegion replaces region i and keeps the former one in oldRegion until it is unused.
func (c *Conn) replaceRegion(i int, r region) { c.oldRegion, c.regions[i] = c.regions[i], r }
