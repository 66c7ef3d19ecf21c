package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/verbs"
)

// prepareReceives prepares up to n more receives.
func (c *Core) prepareReceives(n int) {
	for ; n > 0; n-- {
		slot, ok := c.slots.alloc()
		if !ok {
			return
		}
		b, i := c.slots.find(slot)
		c.in = append(c.in, verbs.RecvWR{WRID: uint64(slot), SGList: c.stageSGE(b.mem.SGE(b.off+i*b.stride, b.stride))})
	}
}

// refillReceives prepares the number of receives that the flow control requires.
func (c *Core) refillReceives() {
	c.prepareReceives(c.receiver.Receives() - c.slots.posted)
}

// creditUpdateDue reports whether a credit update should be sent: half of the receives are
// unadvertised (section 3.1), or the peer knows of none for data or for control messages.
//
// A credit update needs a receive at the peer itself, as other control messages do:
// flow.ReservedCredits receives are reserved for them. Two sides with full buffers have these two
// each and must neither deadlock nor exchange updates endlessly. The side that dialed replies to
// an update only if the peer could not send anything otherwise, and never uses its last credit
// for a message that returns none. The side that accepted may use its last credit, and replies as
// long as the peer cannot send two messages.
func (c *Core) creditUpdateDue() bool {
	fresh, known := c.unadvertised(), c.advertisedLeft()
	if fresh <= 0 {
		return false
	}
	least := 0
	if c.peer.Dialed {
		least = 1
	}
	return known <= least || known <= flow.ReservedCredits && fresh > c.advertised.emptyMessages ||
		fresh > 1 && 2*fresh >= c.receiver.Receives()
}

// scheduleCreditUpdate releases read slots and schedules the credit update that the flow control
// mode requires.
func (c *Core) scheduleCreditUpdate() {
	switch r := c.receiver.(type) {
	case *flow.CreditReceiver:
		for slot, ok := r.PopFreed(); ok; slot, ok = r.PopFreed() {
			c.slots.release(slot)
		}
		c.refillReceives()
		if c.creditUpdateDue() {
			c.controls.creditUpdateDue = true
		}
	case *flow.NICReceiver:
		c.answerReceiveQuery()
	case *flow.RDMAReceiver:
		if _, due := r.ReportFreed(c.creditUpdateDue()); due {
			c.controls.creditUpdateDue = true
		}
	}
}

// postCreditUpdate posts a credit update if it is due and no other message has carried it.
func (c *Core) postCreditUpdate() {
	r, ring := c.receiver.(*flow.RDMAReceiver)
	notice := c.oob.isPending() && !c.oob.announcedToPeer && c.peer.FlowControl != flow.NIC
	q := &c.controls
	q.creditUpdateDue = q.creditUpdateDue && (ring || c.creditUpdateDue())
	if !q.creditUpdateDue && !notice || q.isFull() || !c.canSpendCredit(false) {
		return
	}
	m := control{id: bsdh.MIDData}
	if ring {
		m.id = bsdh.MIDRingUpdate
		freed, _ := r.ReportFreed(true)
		bsdh.RingUpdate{Freed: freed}.Append(m.ext[:0])
	}
	q.creditUpdateDue = false
	c.postControl(&m)
}

// mayLend reports whether the peer is known to have a receive for a message that lends memory,
// with no data ahead of it.
//
// With NIC flow control a message for which the peer has no receive waits in the local adapter
// until the peer's application reads. That is acceptable for data, but not for a message that
// lends memory or reclaims it: the lender must get its memory back in bounded time, for example by
// a deadline. Before lending, the peer must be known to have a receive. When the first of the two
// messages has arrived, the receive is available again, since messages without data leave the
// ring unchanged.
//
// Nothing else requires that knowledge, so a peer reports its receives only on request, by an
// empty Data message with RequestPipe (sendReceiveQuery). Until the reply arrives, data is copied.
func (c *Core) mayLend() bool {
	return c.peer.FlowControl != flow.NIC || c.sender.Unposted() == 0 && c.credits.Available() > 0
}

// sendReceiveQuery sends a query if a caller wants to lend and no receive is known. Replies use
// receives, too, so a reply must not cause another query: two ends would exchange them endlessly.
func (c *Core) sendReceiveQuery() {
	q := &c.receiveQuery
	q.wantLend = q.wantLend && !c.mayLend()
	if !q.wantLend || !q.due || q.asked || c.closing || c.credits.Available() > 0 {
		return
	}
	q.asked, q.due = true, false
	c.queueControl(control{id: bsdh.MIDData, flags: bsdh.RequestPipe})
	c.postUnordered()
}

// answerReceiveQuery replies to the peer's query when a receive is posted.
func (c *Core) answerReceiveQuery() {
	if c.receiveQuery.peerAsked && c.slots.posted > 0 {
		c.receiveQuery.peerAsked = false
		c.queueControl(control{id: bsdh.MIDData})
	}
}
