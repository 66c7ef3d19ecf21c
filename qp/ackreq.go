package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// AckDelay is the time for which a responder delays an acknowledgement that its
// softrnic peer has not requested. Most of them can then be piggybacked or
// coalesced, and the delay is well below the peer's probe timeout.
const AckDelay = reliability.DelayedAckProbe / 3

// maxWithoutAckReq is the maximum number of consecutive packets that request no
// acknowledgement.
const maxWithoutAckReq = 16

// cautiousMessages is the number of messages that request acknowledgements
// after a loss, so that another loss is detected early.
const cautiousMessages = 256

// wantsAck reports whether a packet of w requests an acknowledgement. It does
// if it fills the window, if it is a probe, for every n-th packet, so
// that the window moves before it is full, and at the end of a message unless
// that acknowledgement can be deferred.
func (c *Core) wantsAck(w *sendWQE, last, fillsWindow bool) bool {
	every := uint32(min(maxWithoutAckReq, max(1, c.window.Size()/4/int(c.mtu))))
	return fillsWindow || c.forceAckReq || c.sinceAckReq+1 >= every || last && (c.cautious > 0 || !c.ackDeferrable(w))
}

// recordAckReq records whether a packet that was built requests an acknowledgement. last
// is set for the last packet of a message.
func (c *Core) recordAckReq(last, ackReq bool) {
	if last && c.cautious > 0 {
		c.cautious--
	}
	if ackReq {
		c.forceAckReq, c.sinceAckReq = false, 0
	} else {
		c.sinceAckReq++
	}
}

// ackDeferrable reports whether the acknowledgement of w is not urgent: the
// application does not wait for the completion, and neither queue space,
// credits nor a local operation depend on it. A softrnic peer acknowledges w
// after AckDelay, or earlier with a requested acknowledgement or a response. To
// other peers all messages request an acknowledgement.
func (c *Core) ackDeferrable(w *sendWQE) bool {
	if !c.peerDelaysAcks || 2*uint32(c.sq.len()) >= c.sq.limit {
		return false
	}
	if w.flags&verbs.SendDelayAck == 0 && (c.signalAll || w.flags&verbs.SendSignaled != 0) {
		return false
	}
	if c.cur+1 != c.sq.tail && c.sq.wqeAt(c.cur+1).op == verbs.WRLocalInv {
		return false
	}
	return !w.consumesRecv() || !c.credits.BelowWatermark()
}
