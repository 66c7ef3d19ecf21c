package protocol

import "github.com/softrnic/softrnic/sdp/internal/flow"

// SpillRing frees space in the receive ring with NIC flow control by moving unread data
// elsewhere, and returns the number of bytes moved. A caller that waits for the end of an offer
// must call it whenever data has arrived; otherwise both sides can deadlock.
//
// The peer's reply to an offer, and its RDMA READ before, are queued in its adapter behind the
// data that it has written, and that data waits while the local ring is full. If the local
// application only waits for the reply and the peer's only reads, neither makes progress. (If
// both sides offer at once, the SrcAvail is behind the data.)
//
// SpillRing moves at most the length of the peer's send buffer, which suffices unless the peer
// writes more; then the offer must be cancelled. When the cancellation has arrived, the limit
// doubles, to cover the peer's adapter: no more data is posted ahead of the reply (see
// owesSourceReply). The peer announces the length of its send buffer; no memory is offered to a
// peer with more than maxSpill.
func (c *Core) SpillRing() int {
	r, ok := c.receiver.(*flow.NICReceiver)
	if !ok || !c.offer.live || c.slots.posted > 0 || c.err != nil {
		return 0
	}
	n := r.Spill(c.spillLimit())
	c.postPending()
	return n
}

// maxSpill is the maximum send buffer of a peer that gets offers, in bytes.
const maxSpill = 64 << 20

// spillLimit returns the maximum number of bytes outside of the ring.
func (c *Core) spillLimit() int {
	most := int(min(c.peer.Buffer, maxSpill)) + 2*c.cfg.Window // and a receive for the reply
	if c.offer.cancelDelivered {
		most *= 2
	}
	return most
}

// canSpill reports whether the data ahead of a reply to an offer could be moved out of the ring.
func (c *Core) canSpill() bool {
	return c.peer.FlowControl != flow.NIC || c.peer.Buffer <= maxSpill && c.spilledBytes() == 0
}

// spilledBytes returns the number of bytes outside of the ring.
func (c *Core) spilledBytes() int {
	if r, ok := c.receiver.(*flow.NICReceiver); ok {
		return r.Spilled()
	}
	return 0
}
