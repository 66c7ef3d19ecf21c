package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/sdp/internal/flow"
)

// advertisedReceives records the local receives that the peer knows of. The header of every
// message advertises them; without other messages a credit update is sent.
//
// A credit update needs a receive at the peer itself, as other control messages do:
// flow.ReservedCredits receives are reserved for them. Two sides with full buffers have these two
// each and must neither deadlock nor exchange updates endlessly. The side that dialed replies to
// an update only if the peer could not send anything otherwise, and never uses its last credit
// for a message that returns none. The side that accepted may use its last credit, and replies as
// long as the peer cannot send two messages.
type advertisedReceives struct {
	atSeq         uint32 // last message received at the last advertisement
	count         int    // receives posted at that time
	emptyMessages int    // messages received since then that are only credit updates
}

func (w *advertisedReceives) record(received uint32, posted int) {
	*w = advertisedReceives{atSeq: received, count: min(posted, 1<<16-1)}
}

// advertisedLeft returns the number of messages that the peer may still send by the last
// advertisement.
func (c *Core) advertisedLeft() int { return c.advertised.count - int(c.received-c.advertised.atSeq) }

// unadvertised returns the number of posted receives that the peer does not know of.
func (c *Core) unadvertised() int { return c.slots.posted - c.advertisedLeft() }

// creditUpdateDue reports whether a credit update should be sent: half of the receives are
// unadvertised (section 3.1), or the peer knows of none for data or for control messages.
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

// canSpendCredit reports whether a credit is available for a message. Unless last is set, the
// last credit is reserved for messages that advertise new receives.
func (c *Core) canSpendCredit(last bool) bool {
	left := c.credits.Available()
	return left >= flow.ReservedCredits || left == 1 && (last || c.unadvertised() > 0)
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
