package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/sdp/internal/flow"
)

// A ringChange is the replacement of a receive ring, local or at the peer.
type ringChange struct {
	size        int  // capacity of the local ring, after a pending change
	maxSize     int  // maximum capacity
	tooSmall    bool // a longer ring is wanted
	offered     bool // local: RingChange is queued, RingSwitched has not arrived
	peerPending bool // peer's: RingSwitched is queued
	next        bsdh.RingChange
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

// switchPeerRing directs later data to the peer's new ring, when the RingSwitched is posted.
func (c *Core) switchPeerRing() {
	next := c.ring.next
	c.ring.peerPending = false
	c.peer.Ring, c.peer.RKey, c.peer.Addr = next.Ring, next.RKey, next.Addr
	c.sender.(interface{ SwitchRing(remote int) }).SwitchRing(int(next.Ring))
}
