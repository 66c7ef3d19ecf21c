package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
)

// handleChRcvBuf handles a ChRcvBuf: the peer requests another size of the local receive buffers.
func (c *Core) handleChRcvBuf(bytes uint32) {
	r := &c.bufSize
	switch {
	case c.peer.FlowControl != flow.Credit:
		c.violation("ChRcvBuf with flow control %v", c.peer.FlowControl)
	case r.wanted > 0 || r.switching:
		c.violation("second ChRcvBuf before the ChRcvBufAck")
	case int64(bytes) <= int64(r.ours) || c.cfg.MaxBufferBytes+bsdh.HeaderBytes <= r.ours || c.Resizing():
		c.sendChRcvBufAck() // refuse: the size is unchanged
	default:
		r.wanted = int(min(int64(bytes), int64(c.cfg.MaxBufferBytes+bsdh.HeaderBytes)))
	}
}

// sendChRcvBufAck sends the size of the local receive buffers.
func (c *Core) sendChRcvBufAck() {
	c.bufSize.wanted, c.bufSize.switching = 0, false
	m := control{id: bsdh.MIDChRcvBufAck}
	bsdh.ChRcvBuf{Size: uint32(c.bufSize.ours)}.Append(m.ext[:0])
	c.queueControl(m)
}

// RequestedBufferBytes returns the number of data bytes per message that the peer has requested,
// or 0. Reply with [Core.GrantResize].
func (c *Core) RequestedBufferBytes() int { return max(0, c.bufSize.wanted-bsdh.HeaderBytes) }

// GrantResize grants the peer's request or, if mem is empty, refuses it. mem must have
// Config.ResizeBytes(data) bytes, for messages of data bytes, more than before and at most
// RequestedBufferBytes. New receives use mem; the peer gets the ChRcvBufAck when all receives
// posted before have been used. The old memory belongs to the caller again when [Core.Resizing]
// returns false. GrantResize returns false if no request is pending or the sizes do not fit.
func (c *Core) GrantResize(mem Memory, data int) bool {
	r, s := &c.bufSize, &c.slots
	size := data + bsdh.HeaderBytes
	if r.wanted == 0 || c.err != nil {
		return false
	}
	if len(mem.Bytes) == 0 {
		c.sendChRcvBufAck()
		c.buildRequests()
		return true
	}
	if size <= r.ours || size > r.wanted || len(mem.Bytes) < c.cfg.ResizeBytes(data) {
		return false
	}
	n := len(s.large.posted)
	s.old = s.large
	s.large = bank{mem: mem, stride: size, posted: make([]bool, n)}
	s.generation ^= slotMask + 1
	s.oldInUse = n - len(s.freeList)
	for i, slot := range s.freeList {
		s.freeList[i] = slot&slotMask | s.generation
	}
	r.posted, r.ours, r.wanted, r.switching = s.posted, size, 0, true
	if s.posted == 0 {
		c.sendChRcvBufAck()
		c.buildRequests()
	}
	return true
}

// ResizeBytes returns the size of the memory that GrantResize requires for messages with data
// bytes.
func (c *Config) ResizeBytes(data int) int { return c.largeReceives() * (data + bsdh.HeaderBytes) }

// Resizing reports whether receive buffers from before the last GrantResize are in use.
func (c *Core) Resizing() bool { return c.slots.oldInUse > 0 }

// countOldReceive counts a message in an old receive, and sends the ChRcvBufAck after the last
// one.
func (c *Core) countOldReceive() {
	r := &c.bufSize
	r.posted--
	if r.switching && r.posted == 0 {
		c.sendChRcvBufAck()
	}
}

// RequestPeerSize sends a ChRcvBuf for receive buffers of data bytes. It returns false if that is
// no more than the current size or a request is outstanding. Sizes beyond the local send buffers
// have no effect.
func (c *Core) RequestPeerSize(data int) bool {
	r := &c.bufSize
	size := int64(data) + bsdh.HeaderBytes
	if c.err != nil || c.closing || c.peer.FlowControl != flow.Credit || r.asked || size <= int64(r.theirs) || size > 1<<31 {
		return false
	}
	r.asked = true
	m := control{id: bsdh.MIDChRcvBuf}
	bsdh.ChRcvBuf{Size: uint32(size)}.Append(m.ext[:0])
	c.queueControl(m)
	c.buildRequests()
	return true
}

// PeerBufferBytes returns the number of data bytes that a receive buffer of the peer holds.
func (c *Core) PeerBufferBytes() int {
	return int(min(c.bufSize.theirs, MaxTransfer)) - bsdh.HeaderBytes
}

// handleChRcvBufAck handles a ChRcvBufAck.
func (c *Core) handleChRcvBufAck(bytes uint32) {
	r := &c.bufSize
	switch {
	case !r.asked || c.isQueued(bsdh.MIDChRcvBuf):
		c.violation("ChRcvBufAck without a ChRcvBuf")
	case bytes < r.theirs:
		c.violation("ChRcvBufAck of %d bytes, less than the current %d", bytes, r.theirs)
	default:
		r.asked, r.theirs = false, bytes
		c.sender.(*flow.CreditSender).Resize(c.PeerBufferBytes())
	}
}

// RingSize returns the capacity of the receive ring in bytes, after a pending change; 0 without a
// ring.
func (c *Core) RingSize() int { return c.ring.size }

// RingWanted returns the capacity that the receive ring should get, because unread data filled
// more than half of it or used all receives. It returns 0 if neither happened or the ring has its
// maximum capacity.
func (c *Core) RingWanted() int {
	if !c.ring.tooSmall || c.err != nil {
		return 0
	}
	return min(flow.GrownLength(c.ring.size), c.ring.maxSize)
}

// KeepRing cancels the request of RingWanted, for lack of memory.
func (c *Core) KeepRing() { c.ring.maxSize, c.ring.tooSmall = c.ring.size, false }

// noteRingPressure records whether the ring is too short.
func (c *Core) noteRingPressure(r flow.RingReceiver) {
	if c.ring.size < c.ring.maxSize && !c.ring.offered && (r.HalfFull() || c.slots.posted == 0) {
		c.ring.tooSmall = true
	}
}

// ChangeRing makes the peer write to another ring, at least as long as the current one, which
// remains in use until [Core.ChangingRing] returns false. It returns false without a ring, if mem
// is shorter, or if the last change is incomplete.
func (c *Core) ChangeRing(mem Memory) bool {
	r, ok := c.receiver.(flow.RingReceiver)
	if !ok || c.err != nil || c.peerClosed || uint64(len(mem.Bytes)) >= bsdh.MaxRing || !r.ChangeRing(mem.Bytes) {
		return false
	}
	c.ring.size, c.ring.tooSmall, c.ring.offered = len(mem.Bytes)-c.cfg.RingSlack(), false, true
	m := control{id: bsdh.MIDRingChange}
	bsdh.RingChange{Ring: uint32(len(mem.Bytes)), RKey: mem.RKey, Addr: mem.Addr}.Append(m.ext[:0])
	c.queueControl(m)
	c.buildRequests()
	return true
}

// ChangingRing reports whether the ring from before ChangeRing is in use.
func (c *Core) ChangingRing() bool {
	r, ok := c.receiver.(flow.RingReceiver)
	return ok && r.ChangingRing()
}

// handleRingSwitched handles a RingSwitched: later data arrives in the new ring. The posted
// receives remain valid, because the new ring is empty and not shorter.
func (c *Core) handleRingSwitched() {
	if !c.ring.offered || c.isQueued(bsdh.MIDRingChange) {
		c.violation("RingSwitched without a RingChange")
		return
	}
	c.ring.offered = false
	c.receiver.(flow.RingReceiver).SwitchRing()
}

func (c *Core) handleRingChange(ext []byte) {
	next, _ := bsdh.ParseExtended[bsdh.RingChange](ext)
	switch {
	case c.ring.peerPending:
		c.violation("second RingChange before the RingSwitched")
	case next.Ring < c.peer.Ring || next.Ring >= bsdh.MaxRing:
		c.violation("RingChange from %d to %d bytes", c.peer.Ring, next.Ring)
	default:
		c.ring.peerPending, c.ring.next = true, next
		c.queueControl(control{id: bsdh.MIDRingSwitched})
	}
}
