package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// An unsentPacket is a UC or UD packet that the system refused to send, of an
// unconfirmed request.
type unsentPacket struct {
	psn     wire.PSN
	refusal *verbs.RefusedError
}

// OnSendRefused records that the system refused to send a packet of the queue
// pair, or that it was returned by ICMP. head is the known beginning of the
// packet from its BTH on. Packets that are not in flight are ignored, so an
// ICMP message must contain a valid PSN.
//
// RC uses a retry after [reliability.RefusedPause], and fails the oldest
// request when no retry is left; RDMA over UD does the same. A UC or UD request
// fails alone when [Core.ConfirmSent] is called, and the queue pair keeps its
// state. A transient error does not count: the packet is lost, and
// retransmitted if the transport is reliable. An RC READ response that exceeds
// the path MTU ends the queue pair with a NAK, because the requester would wait
// in vain. Other responses are treated as lost.
func (c *Core) OnSendRefused(now reliability.Time, head []byte, refusal *verbs.RefusedError) {
	if len(head) < wire.BTHLen {
		return
	}
	bth := wire.ParseBTH(head)
	info := bth.Opcode.Info()
	if info.Valid {
		c.transport.onSendRefused(now, bth, info, refusal)
	}
}

// onRequestRefused records a refused packet of an RC requester.
func (c *Core) onRequestRefused(now reliability.Time, psn wire.PSN, refusal *verbs.RefusedError) {
	if c.state != sRTS && c.state != sSQD || psn.Less(c.una) || !psn.Less(c.top) {
		return
	}
	c.lastRefusal = refusal
	if !refusal.Transient() && c.retry.OnSendRefused(now) == reliability.GiveUp {
		c.exhaustRetries(now)
	}
}

// onResponseRefused rejects a READ whose response is too large to be sent with
// a NAK.
func (c *Core) onResponseRefused(now reliability.Time, psn wire.PSN, refusal *verbs.RefusedError) {
	if c.state == sErr || c.res.FindByPSN(psn) == nil {
		return
	}
	c.res.CancelAll()
	c.acks.ScheduleNAK(wire.NakRemoteOperational, psn)
	f := refusal.Failure()
	f.PSN = uint32(psn)
	c.failReceive(now, verbs.WCRemOpErr, f)
}

// ConfirmSent completes the UC and UD requests whose packets have all been
// built. Requests with a packet that [Core.OnSendRefused] reported fail, the
// others succeed. With Config.ConfirmSends, it must be called after a batch was
// sent.
func (c *Core) ConfirmSent() {
	if !c.confirmSends {
		return
	}
	for c.sq.head != c.cur {
		w := c.sq.wqeAt(c.sq.head)
		if refusal := c.unsentReason(w); refusal != nil {
			c.failHead(w, verbs.WCGeneralErr, refusal.Failure())
		} else {
			c.completeHead(w)
		}
	}
	c.pruneUnsent()
	c.checkDrained()
}

// NeedsConfirm reports whether ConfirmSent has requests to complete.
func (c *Core) NeedsConfirm() bool { return c.confirmSends && c.sq.head != c.cur }

// HasUnsent reports whether unsent UC or UD requests remain after ConfirmSent.
func (c *Core) HasUnsent() bool { return c.confirmSends && c.cur != c.sq.tail && c.state == sRTS }

// unsentReason returns the refusal of a packet of w, or nil.
func (c *Core) unsentReason(w *sendWQE) *verbs.RefusedError {
	for _, u := range c.unsent {
		if !w.isLocal() && u.psn.Sub(w.first) >= 0 && u.psn.LessEq(w.last) {
			return u.refusal
		}
	}
	return nil
}

// pruneUnsent discards the refusals of completed requests. Packets of the
// request at the head may have been sent.
func (c *Core) pruneUnsent() {
	if len(c.unsent) == 0 {
		return
	}
	if c.sq.head != c.sq.tail {
		if w := c.sq.wqeAt(c.sq.head); w.started && c.unsentReason(w) != nil {
			c.unsent = append(c.unsent[:0], c.unsent[len(c.unsent)-1])
			return
		}
	}
	c.unsent = nil
}
