package protocol

import "github.com/softrnic/softrnic/sdp/flow"

// Spill makes room in the ring of the NIC design, by moving what is in it
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
// have: nothing more goes ahead of its answer (see owesAnswer).
func (c *Core) Spill() int {
	r, ok := c.receiver.(*flow.NICReceiver)
	if !ok || !c.offer.live || c.slots.posted > 0 || c.err != nil {
		return 0
	}
	most := int(c.peer.Ring) + 2*c.cfg.Window // and a receive for the answer
	if c.offer.heard {
		most += int(c.peer.Ring)/2 + 2*c.cfg.Window
	}
	n := r.Spill(most)
	c.proceed()
	return n
}

// spilled is how much lies outside the ring.
func (c *Core) spilled() int {
	if r, ok := c.receiver.(*flow.NICReceiver); ok {
		return r.Spilled()
	}
	return 0
}
