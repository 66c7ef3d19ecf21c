package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// completionOp maps a work request's opcode to its completion's.
var completionOp = [...]verbs.WCOpcode{
	verbs.WRRDMAWrite: verbs.WCRDMAWrite, verbs.WRRDMAWriteWithImm: verbs.WCRDMAWrite,
	verbs.WRSend: verbs.WCSend, verbs.WRSendWithImm: verbs.WCSend, verbs.WRSendWithInv: verbs.WCSend,
	verbs.WRRDMARead: verbs.WCRDMARead, verbs.WRAtomicCmpSwap: verbs.WCCompSwap,
	verbs.WRAtomicFetchAdd: verbs.WCFetchAdd, verbs.WRLocalInv: verbs.WCLocalInv, verbs.WRBindMW: verbs.WCBindMW,
	verbs.WRFlush: verbs.WCFlush, verbs.WRAtomicWrite: verbs.WCAtomicWrite,
}

// completeHead removes w, the head of the send queue, and completes it
// successfully.
func (c *Core) completeHead(w *sendWQE) {
	if w.consumesRecv() || c.countsWrites && !w.isLocal() {
		c.counters.RDMASends++
	}
	if w.flags&verbs.SendSignaled != 0 || c.signalAll {
		c.host.Complete(verbs.WC{
			WRID: w.id, Status: verbs.WCSuccess, Opcode: completionOp[w.op], ByteLen: w.length + w.flush.Length, QPN: c.num,
		}, false)
	} else {
		c.counters.Unsignaled++
	}
	c.popHead()
}

// popHead removes the head of the send queue.
func (c *Core) popHead() {
	if c.cur == c.sq.head {
		c.cur++
	}
	if w := c.sq.wqeAt(c.sq.head); c.sel != nil && w.started && !w.isLocal() {
		c.sel.ahead -= c.keptBytes(w)
	}
	c.sq.head++
}

// completeReady completes the requests at the head of the queue that need no
// further acknowledgement: local operations, and answered reads and atomics.
func (c *Core) completeReady(now reliability.Time) {
	for c.sq.head != c.sq.tail {
		w := c.sq.wqeAt(c.sq.head)
		if !w.started || !w.isLocal() && !w.done {
			break
		}
		if !w.isLocal() {
			c.una = w.last.Add(1)
		}
		c.completeHead(w)
	}
	c.checkDrained()
}
