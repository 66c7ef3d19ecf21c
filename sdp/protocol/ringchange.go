package protocol

import (
	"github.com/softrnic/softrnic/sdp/flow"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// ringChange is another ring that takes over, ours or the peer's.
type ringChange struct {
	offered bool // ours: RingChange was said, and RingSwitched has not come
	peers   bool // the peer's: RingSwitched is to be said
	next    bsdh.RingChange
}

// ChangeRing gives the peer another ring to write to, at least as long as the
// one that it has. That one stays in use until [Core.ChangingRing] says that it
// does not, and then is the caller's again. It is false if this is no connection
// with a ring, the ring is shorter, or the last change has not ended.
func (c *Core) ChangeRing(mem Memory) bool {
	r, ok := c.receiver.(flow.RingReceiver)
	if !ok || c.err != nil || c.finished || uint64(len(mem.Bytes)) >= bsdh.MaxRing || !r.Change(mem.Bytes) {
		return false
	}
	c.ring.offered = true
	m := control{id: bsdh.MIDRingChange}
	bsdh.RingChange{Ring: uint32(len(mem.Bytes)), RKey: mem.RKey, Addr: mem.Addr}.Append(m.ext[:0])
	c.say(m)
	c.pump()
	return true
}

// ChangingRing reports whether the ring that was in use at ChangeRing still is.
func (c *Core) ChangingRing() bool {
	r, ok := c.receiver.(flow.RingReceiver)
	return ok && r.Changing()
}

// ringSwitched takes a RingSwitched: what follows is in the new ring. Receives
// that are posted stand for room in it now, which there is: it is empty, and not
// shorter.
func (c *Core) ringSwitched() {
	if !c.ring.offered || c.waits(bsdh.MIDRingChange) {
		c.violation("RingSwitched, and there is no other ring")
		return
	}
	c.ring.offered = false
	c.receiver.(flow.RingReceiver).Switch()
}

// ringOffered takes a RingChange.
func (c *Core) ringOffered(ext []byte) {
	next, _ := bsdh.ParseRingChange(ext)
	switch {
	case c.ring.peers:
		c.violation("a second RingChange before the first was answered")
	case next.Ring < c.peer.Ring || next.Ring >= bsdh.MaxRing:
		c.violation("RingChange from %d to %d bytes", c.peer.Ring, next.Ring)
	default:
		c.ring.peers, c.ring.next = true, next
		c.say(control{id: bsdh.MIDRingSwitched})
	}
}

// switched is when our RingSwitched is posted: data that is posted from now on
// goes to the new ring.
func (c *Core) switched() {
	next := c.ring.next
	c.ring.peers = false
	c.peer.Ring, c.peer.RKey, c.peer.Addr = next.Ring, next.RKey, next.Addr
	c.sender.(interface{ Switch(remote int) }).Switch(int(next.Ring))
}
