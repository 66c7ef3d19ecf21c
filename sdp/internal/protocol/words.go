package protocol

import (
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// advertisedReceives are what the peer knows of our receives. It gets to know it from the
// header of every message; a message of its own is sent when there is no other.
//
// That message needs a receive itself, at the other side, and so do other
// messages without data: flow.ReservedCredits receives are left for them. Two ends whose
// buffers are full have these two each, and pass the right to speak between
// them: who dialed answers a word only if the other could say nothing at all
// without, and never uses the last credit for a message that gives none; who
// was dialed may, and answers as long as the other cannot send two. So either can
// always say something, and they do not answer each other for ever.
type advertisedReceives struct {
	atSeq         uint32 // the last message that had come by the last word
	count         int    // receives there were then
	emptyMessages int    // messages since that are nothing but words
}

func (w *advertisedReceives) record(received uint32, posted int) {
	*w = advertisedReceives{atSeq: received, count: min(posted, 1<<16-1)}
}

// advertisedLeft is how many messages the peer may still send by our last word.
func (c *Core) advertisedLeft() int { return c.advertised.count - int(c.received-c.advertised.atSeq) }

// unadvertised is how many receives the peer has not heard of.
func (c *Core) unadvertised() int { return c.slots.posted - c.advertisedLeft() }

// creditUpdateDue reports whether the peer should hear of our receives: half of them
// are new (section 3.1), or it knows of none that it may use for data, or for
// the messages that it may have to send.
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

// canSpendCredit reports whether there is a credit for a message. The last one is for
// a message that gives some back, unless any may have it.
func (c *Core) canSpendCredit(last bool) bool {
	left := c.credits.Available()
	return left >= flow.ReservedCredits || left == 1 && (last || c.unadvertised() > 0)
}

// scheduleCreditUpdate makes the peer hear what its flow control waits for, when it is time.
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

// postCreditUpdate posts a word if it is due, and no other message has brought it.
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
