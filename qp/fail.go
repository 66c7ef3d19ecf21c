package qp

import (
	"fmt"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// failSend fails w, the head of the send queue, and the queue pair with it.
func (c *Core) failSend(now reliability.Time, w *sendWQE, status verbs.WCStatus, failure *verbs.Failure) {
	c.failHead(w, status, failure)
	c.transport.afterFailure(now)
}

// failHead completes w, the head of the send queue, with an error.
func (c *Core) failHead(w *sendWQE, status verbs.WCStatus, failure *verbs.Failure) {
	c.counters.SendErr++
	failure.Opcode = w.op.String()
	c.host.Complete(verbs.WC{WRID: w.id, Status: status, Opcode: completionOp[w.op], QPN: c.num, Failure: failure}, true)
	c.popHead()
}

// failLocal fails w because memory in its gather list cannot be used.
func (c *Core) failLocal(now reliability.Time, w *sendWQE, m memFault) {
	c.failSend(now, w, verbs.WCLocProtErr, &verbs.Failure{
		Event: "local memory cannot be accessed: " + m.fault.String(), PSN: uint32(c.next),
		Key: m.sge.LKey, Addr: m.sge.Addr, Length: m.sge.Length,
		Cause: localCause(m.fault),
	})
}

func localCause(f Fault) string {
	switch f {
	case FaultKey:
		return "the lkey is not registered; deregister a region only after its requests are complete"
	case FaultDomain:
		return "the region belongs to another protection domain than the queue pair"
	case FaultBounds:
		return "the element exceeds the region; check address and length"
	case FaultAccess:
		return "receives and read results require AccessLocalWrite on the region"
	case FaultMemory:
		return memoryCause
	}
	return ""
}

// memoryCause is the likely cause of FaultMemory.
const memoryCause = "the memory was unmapped or protected after it was registered, or its file was truncated; deregister first"

// failBind fails a bind or local invalidate operation.
func (c *Core) failBind(now reliability.Time, w *sendWQE, f Fault) {
	key := w.immInv
	if w.bind != nil {
		key = w.bind.RKey
	}
	c.failSend(now, w, verbs.WCMWBindErr, &verbs.Failure{
		Event: "memory window: " + f.String(), Key: key,
		Cause: "the region requires AccessMWBind (and AccessLocalWrite for a writable window), the range must be within it, and a bound window must be invalidated first",
	})
}

// failUnanswered fails the oldest request because the peer does not respond.
func (c *Core) failUnanswered(now reliability.Time) {
	if c.sq.head == c.sq.tail {
		return
	}
	f := c.unansweredFailure()
	f.PSN, f.Retries = uint32(c.una), c.retry.RetriesUsed()
	c.failSend(now, c.sq.wqeAt(c.sq.head), verbs.WCRetryExcErr, f)
}

// unansweredFailure returns the reason for a missing acknowledgement: a known
// refusal, or the most likely cause.
func (c *Core) unansweredFailure() *verbs.Failure {
	if c.lastRefusal != nil {
		return c.lastRefusal.Failure()
	}
	f := &verbs.Failure{Event: fmt.Sprintf("no acknowledgement from %v", c.path.Dst)}
	if c.peerSeen {
		f.Cause = fmt.Sprintf("its process or host has terminated, its queue pair 0x%x has failed or is closed, or its system does not send the replies", c.attr.DestQPN)
	} else {
		f.Cause = fmt.Sprintf("its queue pair 0x%x has never responded; a firewall may block UDP port %d, or the address or the number is wrong",
			c.attr.DestQPN, c.path.Dst.Port())
	}
	return f
}

// failResponse fails the oldest request because of an invalid response.
func (c *Core) failResponse(now reliability.Time, p *wire.Packet, mismatch string) {
	c.failSend(now, c.sq.wqeAt(c.sq.head), verbs.WCBadRespErr, &verbs.Failure{
		Event: mismatch + " (" + p.Info.Name + ")", PSN: uint32(p.BTH.PSN),
		Cause: "the PSNs or the path MTU of the two queue pairs differ, or another sender responds",
	})
}

// flushAll completes all requests and receives with WR_FLUSH_ERR, in order.
func (c *Core) flushAll(now reliability.Time) {
	c.retry.Stop()
	if c.sel != nil {
		c.sel.dropKept()
	}
	c.ConfirmSent()
	c.transport.flush()
	for c.sq.head != c.sq.tail {
		c.flushHead(now, c.sq.wqeAt(c.sq.head))
	}
	c.flushRecvs()
	if c.shared != nil {
		c.host.Event(verbs.EventQPLastWQEReached, nil)
	}
}

// flushSends completes all send requests with WR_FLUSH_ERR.
func (c *Core) flushSends(now reliability.Time) {
	c.ConfirmSent()
	c.transport.flush()
	for c.sq.head != c.sq.tail {
		c.flushOne(c.sq.wqeAt(c.sq.head))
	}
	c.next, c.una = c.top, c.top
}

// flushHead completes w, the head of the send queue. An executed local
// operation succeeds; other requests are flushed.
func (c *Core) flushHead(now reliability.Time, w *sendWQE) {
	if w.started && w.isLocal() {
		c.completeHead(w)
		return
	}
	c.flushOne(w)
}

func (c *Core) flushOne(w *sendWQE) {
	c.host.Complete(verbs.WC{WRID: w.id, Status: verbs.WCWRFlushErr, Opcode: completionOp[w.op], QPN: c.num, Failure: flushed}, true)
	c.popHead()
}

// flushRecvs completes the receive in use and all posted receives with
// WR_FLUSH_ERR. Receives of a shared queue stay in it.
func (c *Core) flushRecvs() {
	if c.msg.held {
		c.completeRecvErr(verbs.WCWRFlushErr, flushed)
	}
	if c.shared != nil {
		return
	}
	for c.rq.Pop(&c.msg.wqe) {
		c.completeRecvErr(verbs.WCWRFlushErr, flushed)
	}
}

var flushed = &verbs.Failure{
	Event: "the queue pair entered an error state before this request was complete",
	Cause: "see the first failed completion of this queue pair",
}
