package protocol

import (
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// words are what the peer knows of our receives. It gets to know it from the
// header of every message; a message of its own is sent when there is no other.
//
// That message needs a receive itself, at the other side, and so do other
// messages without data: flow.Reserve receives are left for them. Two ends whose
// buffers are full have these two each, and pass the right to speak between
// them: who dialed answers a word only if the other could say nothing at all
// without, and never uses the last credit for a message that gives none; who
// was dialed may, and answers as long as the other cannot send two. So either can
// always say something, and they do not answer each other for ever.
type words struct {
	at    uint32 // the last message that had come by the last word
	told  int    // receives there were then
	empty int    // messages since that are nothing but words
}

func (w *words) tell(received uint32, posted int) {
	*w = words{at: received, told: min(posted, 1<<16-1)}
}

// known is how many messages the peer may still send by our last word.
func (c *Core) known() int { return c.words.told - int(c.received-c.words.at) }

// fresh is how many receives the peer has not heard of.
func (c *Core) fresh() int { return c.slots.posted - c.known() }

// wordDue reports whether the peer should hear of our receives: half of them
// are new (section 3.1), or it knows of none that it may use for data, or for
// the messages that it may have to send.
func (c *Core) wordDue() bool {
	fresh, known := c.fresh(), c.known()
	if fresh <= 0 {
		return false
	}
	least := 0
	if c.peer.Dialed {
		least = 1
	}
	return known <= least || known <= flow.Reserve && fresh > c.words.empty ||
		fresh > 1 && 2*fresh >= c.receiver.Receives()
}

// maySpend reports whether there is a credit for a message. The last one is for
// a message that gives some back, unless any may have it.
func (c *Core) maySpend(last bool) bool {
	left := c.credits.Left()
	return left >= flow.Reserve || left == 1 && (last || c.fresh() > 0)
}

// report makes the peer hear what its flow control waits for, when it is time.
func (c *Core) report() {
	switch r := c.receiver.(type) {
	case *flow.CreditReceiver:
		for slot, ok := r.Free(); ok; slot, ok = r.Free() {
			c.slots.give(slot)
		}
		c.repost()
		if c.wordDue() {
			c.controls.word = true
		}
	case *flow.NICReceiver:
		c.tell()
	case *flow.RDMAReceiver:
		if _, due := r.Report(c.wordDue()); due {
			c.controls.word = true
		}
	}
}

// pumpWord posts a word if it is due, and no other message has brought it.
func (c *Core) pumpWord() {
	r, ring := c.receiver.(*flow.RDMAReceiver)
	notice := c.urge.pending() && !c.urge.told && c.peer.Design != flow.NIC
	q := &c.controls
	q.word = q.word && (ring || c.wordDue())
	if !q.word && !notice || q.full() || !c.maySpend(false) {
		return
	}
	m := control{id: bsdh.MIDData}
	if ring {
		m.id = bsdh.MIDRingUpdate
		freed, _ := r.Report(true)
		bsdh.RingUpdate{Freed: freed}.Append(m.ext[:0])
	}
	q.word = false
	c.postControl(&m)
}
