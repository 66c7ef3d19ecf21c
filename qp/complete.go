package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// completionOp maps a work request's opcode to its completion's.
var completionOp = [...]verbs.WCOpcode{
	verbs.WRRDMAWrite: verbs.WCRDMAWrite, verbs.WRRDMAWriteWithImm: verbs.WCRDMAWrite,
	verbs.WRSend: verbs.WCSend, verbs.WRSendWithImm: verbs.WCSend, verbs.WRSendWithInv: verbs.WCSend,
	verbs.WRRDMARead: verbs.WCRDMARead, verbs.WRAtomicCmpSwap: verbs.WCCompSwap,
	verbs.WRAtomicFetchAdd: verbs.WCFetchAdd, verbs.WRLocalInv: verbs.WCLocalInv, verbs.WRBindMW: verbs.WCBindMW,
}

// finish takes the request at the head of the queue off with success.
func (c *Core) finish(now Time, w *sendWQE) {
	if w.flags&verbs.SendSignaled != 0 || c.signalAll {
		c.host.Complete(verbs.WC{
			WRID: w.id, Status: verbs.WCSuccess, Opcode: completionOp[w.op], ByteLen: w.length, QPN: c.num,
		}, false)
	}
	c.pop()
}

// pop takes the request at the head of the queue off.
func (c *Core) pop() {
	if c.cur == c.sq.head {
		c.cur++
	}
	c.sq.head++
}

// reap completes everything at the head of the queue that needs no further
// acknowledgement: local operations, and reads and atomics that are answered.
func (c *Core) reap(now Time) {
	for c.sq.head != c.sq.tail {
		w := c.sq.at(c.sq.head)
		if !w.started || !w.isLocal() && !w.done {
			break
		}
		if !w.isLocal() {
			c.una = w.last.Add(1)
		}
		c.finish(now, w)
	}
	c.checkDrained()
}

// acknowledged takes an acknowledgement of everything up to psn. It reports
// whether a read or atomic at or before psn has not been answered, which means
// that its response is lost.
func (c *Core) acknowledged(now Time, psn wire.PSN) (lost bool) {
	before, beforeUna := c.inFlight(), c.una
	for c.sq.head != c.sq.tail {
		w := c.sq.at(c.sq.head)
		if !w.started {
			break
		}
		switch {
		case w.isLocal():
			c.finish(now, w)
			continue
		case w.responds() && !w.done:
			lost = w.first.LessEq(psn)
		case w.last.LessEq(psn):
			c.una = w.last.Add(1)
			c.finish(now, w)
			continue
		case c.una.LessEq(psn):
			c.una = psn.Add(1)
		}
		break
	}
	if c.una != beforeUna {
		if timed, ok := c.rtt.Timing(); ok && wire.PSN(timed).Less(c.una) {
			c.rtt.Acked(now)
		}
		c.resync()
		c.window.Acked(max(0, before-c.inFlight()))
		c.retry.Progress(now, c.una != c.top, &c.rtt)
	}
	c.checkDrained()
	return lost
}

// resync moves the send position past what has been acknowledged meanwhile.
func (c *Core) resync() {
	if !c.next.Less(c.una) {
		return
	}
	c.next = c.una
	for c.cur != c.sq.tail {
		w := c.sq.at(c.cur)
		if !w.started || !w.isLocal() && c.next.LessEq(w.last) {
			return
		}
		c.cur++
	}
}

// oldestUnanswered returns the first read or atomic that waits for its
// response, or nil.
func (c *Core) oldestUnanswered() *sendWQE {
	for i := c.sq.head; i != c.sq.tail; i++ {
		w := c.sq.at(i)
		if !w.started {
			return nil
		}
		if w.responds() && !w.done {
			return w
		}
	}
	return nil
}

// handleResponse takes an acknowledgement, read response or atomic response.
func (c *Core) handleResponse(now Time, p *wire.Packet) wire.Drop {
	psn := p.BTH.PSN
	if !psn.Less(c.top) || psn.Less(c.una.Add(-1)) {
		return wire.DropGhostResponse
	}
	switch p.Info.Operation {
	case wire.OpAck:
		return c.handleAck(now, p)
	case wire.OpReadResponse:
		return c.handleReadResponse(now, p)
	}
	return c.handleAtomicAck(now, p)
}

// handleAck takes an ACK, RNR NAK or NAK.
func (c *Core) handleAck(now Time, p *wire.Packet) wire.Drop {
	psn, aeth := p.BTH.PSN, p.AETH()
	switch aeth.Syndrome.Kind() {
	case wire.KindAck:
		c.credits.Update(aeth.Syndrome.Value(), aeth.MSN)
		if psn.Less(c.una) {
			return wire.DropNone // nothing new but, perhaps, credits
		}
		if c.acknowledged(now, psn) {
			c.sequenceError(now)
		}
		return wire.DropNone
	case wire.KindReserved:
		return wire.DropBadSyndrome
	}
	if psn.Less(c.una) {
		return wire.DropDuplicate
	}
	if c.acknowledged(now, psn.Add(-1)) && aeth.Syndrome.Kind() == wire.KindRNR {
		// A response before the refused packet is missing: ask for that first.
		c.sequenceError(now)
		return wire.DropNone
	}
	if aeth.Syndrome.Kind() == wire.KindRNR {
		c.counters.RcvdRNRErr++
		switch c.retry.RNR(now, aeth.Syndrome.Value()) {
		case reliability.GiveUp:
			c.counters.RetryRNRExceededErr++
			c.failRemote(now, verbs.WCRNRRetryExcErr, psn, aeth.Syndrome)
		case reliability.GoBack:
			c.goBack(psn)
		}
		return wire.DropNone
	}
	switch aeth.Syndrome {
	case wire.NakPSNSequence:
		c.counters.RcvdSeqErr++
		c.sequenceError(now)
	case wire.NakInvalidRequest:
		c.failRemote(now, verbs.WCRemInvReqErr, psn, aeth.Syndrome)
	case wire.NakRemoteAccess:
		c.failRemote(now, verbs.WCRemAccessErr, psn, aeth.Syndrome)
	case wire.NakRemoteOperational:
		c.failRemote(now, verbs.WCRemOpErr, psn, aeth.Syndrome)
	case wire.NakInvalidRD:
		c.failRemote(now, verbs.WCRemInvRDReqErr, psn, aeth.Syndrome)
	default:
		return wire.DropBadSyndrome
	}
	return wire.DropNone
}

// sequenceError goes back to the oldest packet that is not acknowledged,
// unless that is under way.
func (c *Core) sequenceError(now Time) {
	switch c.retry.SequenceNAK(c.una) {
	case reliability.GiveUp:
		c.giveUp(now)
	case reliability.GoBack:
		c.counters.CompleterRetryErr++
		c.window.Lost(now, c.rtt.Smoothed())
		c.goBack(c.una)
	}
}

// giveUp fails the oldest request: its retries are spent.
func (c *Core) giveUp(now Time) {
	c.counters.RetryExceededErr++
	c.failRetries(now)
}

// handleReadResponse places read data. Any of FIRST, MIDDLE, LAST and ONLY is
// taken at the expected PSN: responders differ in what they start a repeated
// response with.
func (c *Core) handleReadResponse(now Time, p *wire.Packet) wire.Drop {
	psn := p.BTH.PSN
	w := c.oldestUnanswered()
	if w == nil || w.op != verbs.WRRDMARead {
		if w != nil && !w.first.Less(psn.Add(1)) || psn.Less(c.una) {
			return wire.DropDuplicate
		}
		return c.badResponse(now, p, "a read response came, but no read is outstanding there")
	}
	switch d := psn.Sub(w.first.Add(int(w.got / c.mtu))); {
	case d < 0:
		return wire.DropDuplicate
	case d > 0:
		c.acknowledged(now, w.first.Add(-1))
		c.sequenceError(now)
		return wire.DropOutOfSequence
	}
	n := uint32(len(p.Payload))
	if n != min(c.mtu, w.length-w.got) {
		return c.badResponse(now, p, "the read response has another length than was asked for")
	}
	c.acknowledged(now, w.first.Add(-1)) // it stands for an acknowledgement of all before it; w is the head now
	i := c.sq.head
	w = c.sq.at(i)
	if m := c.scatter(c.sq.sgl(i), w.got, p.Payload); !m.ok() {
		c.failLocal(now, w, m)
		return wire.DropNone
	}
	if p.Info.AETH {
		aeth := p.AETH()
		c.credits.Update(aeth.Syndrome.Value(), aeth.MSN)
	}
	c.counters.RcvdBytes += uint64(n)
	parts, bytes := w.parts(c.readPart), w.unanswered()
	w.got += n
	w.asked = max(w.asked, w.got) // it may answer a request that is about to be repeated
	w.done = w.got == w.length
	c.rdOut -= parts - w.parts(c.readPart)
	c.rdBytes -= bytes - w.unanswered()
	c.una = psn.Add(1)
	c.progressed(now)
	return wire.DropNone
}

// handleAtomicAck places the original value of an atomic.
func (c *Core) handleAtomicAck(now Time, p *wire.Packet) wire.Drop {
	psn := p.BTH.PSN
	w := c.oldestUnanswered()
	if w == nil || !w.isAtomic() {
		if w != nil && !w.first.Less(psn.Add(1)) || psn.Less(c.una) {
			return wire.DropDuplicate
		}
		return c.badResponse(now, p, "an atomic response came, but no atomic is outstanding there")
	}
	switch d := psn.Sub(w.first); {
	case d < 0:
		return wire.DropDuplicate
	case d > 0:
		c.acknowledged(now, w.first.Add(-1))
		c.sequenceError(now)
		return wire.DropOutOfSequence
	}
	c.acknowledged(now, psn.Add(-1))
	i := c.sq.head
	w = c.sq.at(i)
	var b [8]byte
	putHost(b[:], p.AtomicAckETH().Orig)
	if m := c.scatter(c.sq.sgl(i), 0, b[:]); !m.ok() {
		c.failLocal(now, w, m)
		return wire.DropNone
	}
	aeth := p.AETH()
	c.credits.Update(aeth.Syndrome.Value(), aeth.MSN)
	c.rdOut -= w.asked // 0 if it answers a request that is about to be repeated
	w.done = true
	c.una = psn.Add(1)
	c.progressed(now)
	return wire.DropNone
}

// progressed does what follows a response that brought something new.
func (c *Core) progressed(now Time) {
	if timed, ok := c.rtt.Timing(); ok && wire.PSN(timed).Less(c.una) {
		c.rtt.Acked(now)
	}
	c.reap(now)
	c.resync()
	c.retry.Progress(now, c.una != c.top, &c.rtt)
}

// badResponse fails the oldest request for a response that contradicts it.
func (c *Core) badResponse(now Time, p *wire.Packet, what string) wire.Drop {
	if c.sq.head == c.sq.tail || !c.sq.at(c.sq.head).started {
		return wire.DropGhostResponse
	}
	c.failResponse(now, p, what)
	return wire.DropNone
}
