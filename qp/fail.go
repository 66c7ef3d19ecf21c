package qp

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// failSend fails w, the request at the head of the queue. RC goes to ERR; UC
// and UD, which fail only locally, to SQE.
func (c *Core) failSend(now Time, w *sendWQE, status verbs.WCStatus, why *verbs.Failure) {
	c.failHead(w, status, why)
	if c.typ == verbs.RC {
		c.enter(now, sErr)
		return
	}
	c.enter(now, sSQE)
	c.flushSends(now)
}

// failHead completes w, the request at the head of the queue, with an error.
func (c *Core) failHead(w *sendWQE, status verbs.WCStatus, why *verbs.Failure) {
	c.counters.SendErr++
	why.Opcode = w.op.String()
	c.host.Complete(verbs.WC{WRID: w.id, Status: status, Opcode: completionOp[w.op], QPN: c.num, Why: why}, true)
	c.pop()
}

// failLocal fails w because memory named in its list may not be used.
func (c *Core) failLocal(now Time, w *sendWQE, m memFault) {
	c.failSend(now, w, verbs.WCLocProtErr, &verbs.Failure{
		Event: "local memory cannot be used: " + m.fault.String(), PSN: uint32(c.next),
		Key: m.sge.LKey, Addr: m.sge.Addr, Length: m.sge.Length,
		Cause: localCause(m.fault),
	})
}

func localCause(f Fault) string {
	switch f {
	case FaultKey:
		return "the lkey is not (or no longer) registered; was the region deregistered before the work completed?"
	case FaultDomain:
		return "the region belongs to another protection domain than the queue pair"
	case FaultBounds:
		return "the element reaches beyond the region; check address and length"
	case FaultAccess:
		return "receives and read results need AccessLocalWrite on the region"
	}
	return ""
}

// failBind fails a bind or local invalidate.
func (c *Core) failBind(now Time, w *sendWQE, f Fault) {
	key := w.immInv
	if w.bind != nil {
		key = w.bind.RKey
	}
	c.failSend(now, w, verbs.WCMWBindErr, &verbs.Failure{
		Event: "memory window: " + f.String(), Key: key,
		Cause: "the region needs AccessMWBind (and AccessLocalWrite for a writable window), the range must lie inside it, and a window is bound once until it is invalidated",
	})
}

// failRemote fails the request that psn belongs to because the peer refused it.
// What is before it has been acknowledged, but for reads and atomics whose
// responses are lost.
func (c *Core) failRemote(now Time, status verbs.WCStatus, psn wire.PSN, s wire.Syndrome) {
	if c.sq.head == c.sq.tail || !c.sq.at(c.sq.head).started {
		return
	}
	if c.sq.at(c.sq.head).last.Less(psn) {
		c.failLost(now, psn, s)
	}
	w := c.sq.at(c.sq.head)
	why := &verbs.Failure{
		Event: fmt.Sprintf("peer answered %v (0x%02x)", s, uint8(s)), PSN: uint32(psn),
		Key: w.rkey, Addr: w.remote, Length: w.length,
	}
	switch status {
	case verbs.WCRemInvReqErr:
		why.Cause = "the peer's queue pair does not permit the operation (access flags, max_dest_rd_atomic), the message does not fit its receive, or the path MTUs differ"
	case verbs.WCRemAccessErr:
		why.Cause = "wrong rkey, range outside the region, or a permission the peer's region does not grant"
	case verbs.WCRemOpErr:
		why.Cause = "the peer could not carry it out, for instance because its receive list is bad or too short"
	case verbs.WCRNRRetryExcErr:
		why.Retries = c.retry.RNRSpent()
		why.Key, why.Addr = 0, 0
		why.Cause = "the peer posts receives too late or too few; post more, or raise rnr_retry (7 is for ever) or the peer's min_rnr_timer"
	}
	c.failSend(now, w, status, why)
}

// failLost fails the oldest request, a read or atomic whose response is lost,
// because the peer refused a later one, that of psn, and answers nothing any
// more: asking again, as Linux's rxe and hfi1 do, would end with the same
// status when all retries are spent, and never without a timeout. What is
// between the two is flushed.
func (c *Core) failLost(now Time, psn wire.PSN, s wire.Syndrome) {
	w := c.sq.at(c.sq.head)
	c.failHead(w, verbs.WCRetryExcErr, &verbs.Failure{
		Event: fmt.Sprintf("its response was lost, and the peer cannot send it again: it answered %v (0x%02x) to a later request, at PSN %d", s, uint8(s), psn),
		PSN:   uint32(c.una),
		Cause: "the peer has carried this request out; what ended the connection is the later request, which fails with a status of its own",
	})
	for w = c.sq.at(c.sq.head); w.isLocal() || w.last.Less(psn); w = c.sq.at(c.sq.head) {
		c.flushHead(now, w)
	}
}

// failRetries fails the oldest request because nobody answers.
func (c *Core) failRetries(now Time) {
	if c.sq.head == c.sq.tail {
		return
	}
	w := c.sq.at(c.sq.head)
	c.failSend(now, w, verbs.WCRetryExcErr, &verbs.Failure{
		Event: fmt.Sprintf("no acknowledgement from %v", c.path.Dst), PSN: uint32(c.una), Retries: c.retry.Spent(),
		Cause: fmt.Sprintf("the peer is gone, its queue pair 0x%x is not in RTR or RTS or is connected to someone else, the address is wrong, or timeout %d with retry_cnt %d is too short for the path",
			c.attr.DestQPN, c.attr.Timeout, c.attr.RetryCnt),
	})
}

// failResponse fails the oldest request for a nonsensical response.
func (c *Core) failResponse(now Time, p *wire.Packet, what string) {
	c.failSend(now, c.sq.at(c.sq.head), verbs.WCBadRespErr, &verbs.Failure{
		Event: what + " (" + p.Info.Name + ")", PSN: uint32(p.BTH.PSN),
		Cause: "the two ends disagree on PSNs or path MTU, or someone else answers",
	})
}

// flush completes all work with WR_FLUSH_ERR, in order.
func (c *Core) flush(now Time) {
	c.retry.Stop()
	for c.sq.head != c.sq.tail {
		c.flushHead(now, c.sq.at(c.sq.head))
	}
	c.flushRecvs()
	if c.shared != nil {
		c.host.Event(verbs.EventQPLastWQEReached, nil)
	}
}

// flushSends completes all send requests with WR_FLUSH_ERR.
func (c *Core) flushSends(now Time) {
	for c.sq.head != c.sq.tail {
		c.flushOne(c.sq.at(c.sq.head))
	}
	c.next, c.una = c.top, c.top
}

// flushHead ends w, the request at the head of the queue: a local operation
// that has been carried out is complete.
func (c *Core) flushHead(now Time, w *sendWQE) {
	if w.started && w.isLocal() {
		c.finish(now, w)
		return
	}
	c.flushOne(w)
}

func (c *Core) flushOne(w *sendWQE) {
	c.host.Complete(verbs.WC{WRID: w.id, Status: verbs.WCWRFlushErr, Opcode: completionOp[w.op], QPN: c.num, Why: flushed}, true)
	c.pop()
}

// flushRecvs completes the receive in use and all posted ones with
// WR_FLUSH_ERR. Those of a shared queue stay there.
func (c *Core) flushRecvs() {
	if c.msg.held {
		c.completeRecvErr(verbs.WCWRFlushErr, flushed)
	}
	if c.shared != nil {
		return
	}
	for c.rq.Take(&c.msg.wqe) {
		c.completeRecvErr(verbs.WCWRFlushErr, flushed)
	}
}

var flushed = &verbs.Failure{
	Event: "the queue pair went to an error state before this request was carried out",
	Cause: "look at the first failed completion of this queue pair",
}
