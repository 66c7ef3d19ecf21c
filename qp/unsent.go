package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// unsentPacket is a packet of UC or UD that the system refused to send, of a request that has not
// been confirmed.
type unsentPacket struct {
	psn wire.PSN
	why *verbs.RefusedError
}

// OnSendRefused notes that a packet of the queue pair was not sent, or came back by ICMP.
// head is the known beginning of the packet, from its BTH on: a packet that is not in
// flight is ignored, so that an ICMP message has to know its PSN.
//
// RC spends a retry after [reliability.RefusedPause], and fails the oldest request
// when none is left; so does RDMA over UD. A request of UC or UD fails alone when
// [Core.ConfirmSent] is called, and the queue pair stays in its state. A transient
// error is not counted: the packet is lost, and retransmitted where the transport
// does that. A READ response of RC that the path does not carry ends the queue pair
// with a NAK: the requester would wait in vain. Other responses are lost.
func (c *Core) OnSendRefused(now Time, head []byte, why *verbs.RefusedError) {
	if len(head) < wire.BTHLen {
		return
	}
	bth := wire.ParseBTH(head)
	info := bth.Opcode.Info()
	switch {
	case !info.Valid:
	case info.Class == wire.ClassUDX:
		if c.rdma != nil && info.Request {
			c.rdma.onSendRefused(now, bth, why)
		}
	case info.Class != c.class:
	case !info.Request:
		if info.Operation == wire.OpReadResponse && why.TooLarge() {
			c.onResponseRefused(now, bth.PSN, why)
		}
	case c.typ == verbs.RC:
		c.onRequestRefused(now, bth.PSN, why)
	case !why.Transient() && !why.ICMP:
		c.unsent = append(c.unsent, unsentPacket{bth.PSN, why})
	}
}

// onRequestRefused notes a refused packet of an RC requester.
func (c *Core) onRequestRefused(now Time, psn wire.PSN, why *verbs.RefusedError) {
	if c.state != sRTS && c.state != sSQD || psn.Less(c.una) || !psn.Less(c.top) {
		return
	}
	c.lastRefusal = why
	if !why.Transient() && c.retry.OnSendRefused(now) == reliability.GiveUp {
		c.exhaustRetries(now)
	}
}

// onResponseRefused answers a READ, whose response is too large to be sent, with a NAK.
func (c *Core) onResponseRefused(now Time, psn wire.PSN, why *verbs.RefusedError) {
	if c.state == sErr || c.res.FindByPSN(psn) == nil {
		return
	}
	c.res.CancelAll()
	c.acks.ScheduleNAK(wire.NakRemoteOperational, psn)
	f := why.Failure()
	f.PSN = uint32(psn)
	c.failReceive(now, verbs.WCRemOpErr, f)
}

// ConfirmSent completes the requests of UC and UD whose packets have all been laid
// out: those of which [Core.OnSendRefused] named a packet with an error, the others with
// success. With Config.ConfirmSends, it has to be called when the batch has left.
func (c *Core) ConfirmSent() {
	if !c.confirmSends {
		return
	}
	for c.sq.head != c.cur {
		w := c.sq.wqeAt(c.sq.head)
		if why := c.unsentReason(w); why != nil {
			c.failHead(w, verbs.WCGeneralErr, why.Failure())
		} else {
			c.completeHead(w)
		}
	}
	c.pruneUnsent()
	c.checkDrained()
}

// NeedsConfirm reports whether ConfirmSent has something to do.
func (c *Core) NeedsConfirm() bool { return c.confirmSends && c.sq.head != c.cur }

// HasUnsent reports whether a request of UC or UD waits for ConfirmSent to end those before it.
func (c *Core) HasUnsent() bool { return c.confirmSends && c.cur != c.sq.tail && c.state == sRTS }

// unsentReason returns why a packet of w was not sent, nil if all were.
func (c *Core) unsentReason(w *sendWQE) *verbs.RefusedError {
	for _, u := range c.unsent {
		if !w.isLocal() && u.psn.Sub(w.first) >= 0 && u.psn.LessEq(w.last) {
			return u.why
		}
	}
	return nil
}

// pruneUnsent drops what belongs to requests that are complete. The request at
// the head may have begun to leave.
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

// onSendRefused notes a refused packet of a peer's request.
func (r *rdma) onSendRefused(now Time, bth wire.BTH, why *verbs.RefusedError) {
	for _, p := range r.busy {
		if p.qpn == bth.DestQPN && p.path.Dst.Addr().WithZone("") == why.Peer.Addr().WithZone("") && p.findInFlight(bth.PSN) != nil {
			p.onRequestRefused(now, why)
			return
		}
	}
}

// refusedRetries is the number of attempts of a request that the system may refuse
// before the requests to the peer fail, as with retry_cnt 7.
const refusedRetries = 7

// onRequestRefused counts an attempt that the system refused, once.
func (p *Peer) onRequestRefused(now Time, why *verbs.RefusedError) {
	p.lastRefusal = why
	if why.Transient() || p.attemptRefused {
		return
	}
	if p.refusals++; p.refusals > refusedRetries {
		p.core.counters.RetryExceededErr++
		f := why.Failure()
		f.PSN, f.Retries = uint32(p.una), refusedRetries
		p.failAll(verbs.WCRetryExcErr, f)
		return
	}
	p.attemptRefused = true
	p.deadline = now + reliability.RefusedPause
	p.core.rdma.deadline = reliability.Earlier(p.core.rdma.deadline, p.deadline)
}
