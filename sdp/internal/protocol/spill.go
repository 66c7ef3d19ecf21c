package protocol

import "github.com/softrnic/softrnic/sdp/internal/flow"

// SpillRing makes room in the ring of the NIC design, by moving what is in it
// elsewhere, and returns how many bytes that were. It is for a call that waits
// for the end of an offer, and to be repeated while it does, when something has
// arrived.
//
// The answer to an offer, and the RDMA READ before it, are behind what the peer
// has written to us: its adapter holds that back while our ring is full. If our
// application does nothing but wait for the answer, and the peer's nothing but
// read, neither would ever come. (Between two ends that offer at the same time it
// is the SrcAvail that is behind it.)
//
// What is moved is no more than the peer's send buffer holds, which is enough if
// the peer writes nothing new. If it does, the offer has to be cancelled. When
// the peer has got to know that, there is as much room again as its adapter can
// have: nothing more goes ahead of its answer (see owesAnswer). How long that
// buffer is the peer says; to one who says more than mostSpilled nothing is
// offered.
func (c *Core) SpillRing() int {
	r, ok := c.receiver.(*flow.NICReceiver)
	if !ok || !c.offer.live || c.slots.posted > 0 || c.err != nil {
		return 0
	}
	n := r.Spill(c.spillLimit())
	c.postPending()
	return n
}

// maxSpill is the longest buffer of a peer that there would be room for.
const maxSpill = 64 << 20

// spillLimit is how much may lie outside of the ring.
func (c *Core) spillLimit() int {
	most := int(min(c.peer.Buffer, maxSpill)) + 2*c.cfg.Window // and a receive for the answer
	if c.offer.cancelDelivered {
		most *= 2
	}
	return most
}

// canSpill reports whether there would be room for what is in the way of the
// answer to an offer.
func (c *Core) canSpill() bool {
	return c.peer.FlowControl != flow.NIC || c.peer.Buffer <= maxSpill && c.spilledBytes() == 0
}

// spilledBytes is how much lies outside the ring.
func (c *Core) spilledBytes() int {
	if r, ok := c.receiver.(*flow.NICReceiver); ok {
		return r.Spilled()
	}
	return 0
}
