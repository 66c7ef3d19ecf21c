package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// AckDelay is how long a responder keeps an acknowledgement that its peer, an
// adapter like ours, has not asked for: long enough for most to go with
// something else, since each costs both ends a turn of their processes, and
// well below the time after which that peer would probe.
const AckDelay = reliability.DelayedAckProbe / 3

// maxWithoutAckReq is how many packets may follow one another without asking for an
// acknowledgement.
const maxWithoutAckReq = 16

// cautiousMessages is how many messages ask for acknowledgements after something was
// lost, so that the next loss is noticed soon.
const cautiousMessages = 256

// wantsAck decides whether a packet of w asks for an acknowledgement: one that
// uses up the window does (edge), a probe does, every so many others do, so
// that the window moves before it is used up, and the last of a message does
// unless nobody waits for that.
func (c *Core) wantsAck(w *sendWQE, last, edge bool) bool {
	every := uint32(min(maxWithoutAckReq, max(1, c.window.Size()/4/int(c.mtu))))
	careful := c.cautious > 0
	if careful && last {
		c.cautious--
	}
	if edge || c.forceAckReq || c.sinceAckReq+1 >= every || last && (careful || !c.ackDeferrable(w)) {
		c.forceAckReq = false
		c.sinceAckReq = 0
		return true
	}
	c.sinceAckReq++
	return false
}

// ackDeferrable tells messages whose acknowledgement nothing waits for: nobody is in a
// hurry for a completion, no room in the send queue, no credit, no local operation
// behind it. The peer, an adapter like ours, acknowledges them after AckDelay, with
// the next that asks, or with a response; to any other, all messages ask.
func (c *Core) ackDeferrable(w *sendWQE) bool {
	if !c.peerDelaysAcks || 2*uint32(c.sq.len()) >= c.sq.limit {
		return false
	}
	if w.flags&verbs.SendUnhurried == 0 && (c.signalAll || w.flags&verbs.SendSignaled != 0) {
		return false
	}
	if c.cur+1 != c.sq.tail && c.sq.wqeAt(c.cur+1).op == verbs.WRLocalInv {
		return false
	}
	return !w.consumesRecv() || !c.credits.BelowWatermark()
}
