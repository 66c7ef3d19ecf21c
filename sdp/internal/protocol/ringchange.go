package protocol

import (
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// ringChange is another ring that takes over, ours or the peer's.
type ringChange struct {
	size        int  // bytes that ours holds, or will when the change has ended
	maxSize     int  // that it should hold
	tooSmall    bool // it has been too small
	offered     bool // ours: RingChange was said, and RingSwitched has not come
	peerPending bool // the peer's: RingSwitched is to be said
	next        bsdh.RingChange
}

// RingSize is how many bytes our receive ring holds, or will when the change that is under
// way has ended; 0 without a ring.
func (c *Core) RingSize() int { return c.ring.size }

// RingWanted is how many bytes our receive ring should hold because it has been too small:
// what came filled more than half of it, or used up all receives. It is 0 if that has not
// been, or the ring is as long as the configuration has it.
func (c *Core) RingWanted() int {
	if !c.ring.tooSmall || c.err != nil {
		return 0
	}
	return min(flow.GrownLength(c.ring.size), c.ring.maxSize)
}

// KeepRing ends the wish for a longer ring, for there is no memory for one.
func (c *Core) KeepRing() { c.ring.maxSize, c.ring.tooSmall = c.ring.size, false }

// noteRingPressure takes note of whether the ring is too small.
func (c *Core) noteRingPressure(r flow.RingReceiver) {
	if c.ring.size < c.ring.maxSize && !c.ring.offered && (r.HalfFull() || c.slots.posted == 0) {
		c.ring.tooSmall = true
	}
}

// ChangeRing gives the peer another ring to write to, at least as long as the
// one that it has. That one stays in use until [Core.ChangingRing] says that it
// does not, and then is the caller's again. It is false if this is no connection
// with a ring, the ring is shorter, or the last change has not ended.
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

// ChangingRing reports whether the ring that was in use at ChangeRing still is.
func (c *Core) ChangingRing() bool {
	r, ok := c.receiver.(flow.RingReceiver)
	return ok && r.ChangingRing()
}

// handleRingSwitched takes a RingSwitched: what follows is in the new ring. Receives
// that are posted stand for room in it now, which there is: it is empty, and not
// shorter.
func (c *Core) handleRingSwitched() {
	if !c.ring.offered || c.isQueued(bsdh.MIDRingChange) {
		c.violation("RingSwitched, and there is no other ring")
		return
	}
	c.ring.offered = false
	c.receiver.(flow.RingReceiver).SwitchRing()
}

// handleRingChange takes a RingChange.
func (c *Core) handleRingChange(ext []byte) {
	next, _ := bsdh.ParseRingChange(ext)
	switch {
	case c.ring.peerPending:
		c.violation("a second RingChange before the first was answered")
	case next.Ring < c.peer.Ring || next.Ring >= bsdh.MaxRing:
		c.violation("RingChange from %d to %d bytes", c.peer.Ring, next.Ring)
	default:
		c.ring.peerPending, c.ring.next = true, next
		c.queueControl(control{id: bsdh.MIDRingSwitched})
	}
}

// switchPeerRing is when our RingSwitched is posted: data that is posted from now on
// goes to the new ring.
func (c *Core) switchPeerRing() {
	next := c.ring.next
	c.ring.peerPending = false
	c.peer.Ring, c.peer.RKey, c.peer.Addr = next.Ring, next.RKey, next.Addr
	c.sender.(interface{ SwitchRing(remote int) }).SwitchRing(int(next.Ring))
}
