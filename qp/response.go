package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// handleResponse handles an acknowledgement, read response or atomic response.
func (c *Core) handleResponse(now reliability.Time, p *wire.Packet) wire.Drop {
	psn := p.BTH.PSN
	if !psn.Less(c.top) || psn.Less(c.una.Add(-1)) {
		return wire.DropGhostResponse
	}
	switch p.Info.Operation {
	case wire.OpAck:
		return c.handleAck(now, p)
	case wire.OpSelectiveAck:
		if c.sel == nil || p.AETH().Syndrome.Kind() != wire.KindAck {
			return wire.DropWrongTransport
		}
		return c.handleSelectiveAck(now, p)
	}
	if c.sel != nil {
		return c.handleSelectiveResponse(now, p)
	}
	if p.Info.Operation == wire.OpReadResponse {
		return c.handleReadResponse(now, p)
	}
	return c.handleAtomicAck(now, p)
}

// handleAck handles an ACK, RNR NAK or NAK.
func (c *Core) handleAck(now reliability.Time, p *wire.Packet) wire.Drop {
	psn, aeth := p.BTH.PSN, p.AETH()
	switch aeth.Syndrome.Kind() {
	case wire.KindAck:
		if c.sel != nil {
			c.acceptAck(now, p)
			c.afterArrivals(now)
			return wire.DropNone
		}
		c.credits.Update(aeth.Syndrome.Value(), aeth.MSN)
		// The limit may not have moved now: requests after the rejected one that
		// consume no receive have moved it before.
		if c.softrnicPeer && c.credits.PeerAdvertises() && aeth.Syndrome.Value() != 0 && c.retry.EndRNRWait(now, &c.rtt) {
			c.forceAckReq = true
		}
		if psn.Less(c.una) {
			return wire.DropNone // duplicate, except for its credits
		}
		switch lost := c.ackThrough(now, psn); {
		case lost:
			c.onSequenceError(now)
		case c.tailLost(psn):
			c.counters.CompleterRetryErr++
			c.onDataLost(now)
			c.goBack()
		}
		return wire.DropNone
	case wire.KindReserved:
		return wire.DropBadSyndrome
	}
	if psn.Less(c.una) {
		return wire.DropDuplicate
	}
	if c.sel != nil {
		c.advanceExecuted(now, psn)
		c.afterArrivals(now)
	} else if c.ackThrough(now, psn.Add(-1)) && aeth.Syndrome.Kind() == wire.KindRNR {
		// A response before the rejected packet was lost: retransmit that first.
		c.onSequenceError(now)
		return wire.DropNone
	}
	if aeth.Syndrome.Kind() == wire.KindRNR {
		c.counters.RcvdRNRErr++
		switch c.retry.OnRNR(now, aeth.Syndrome.Value(), c.softrnicPeer && c.credits.PeerAdvertises()) {
		case reliability.GiveUp:
			c.counters.RetryRNRExceededErr++
			c.failRemote(now, verbs.WCRNRRetryExcErr, psn, aeth.Syndrome)
		case reliability.GoBack:
			if c.sel != nil {
				c.loseRequest(psn)
			} else {
				c.goBack()
			}
		}
		return wire.DropNone
	}
	switch aeth.Syndrome {
	case wire.NakPSNSequence:
		c.counters.RcvdSeqErr++
		if c.sel != nil {
			break // the peer sends selective acknowledgements instead
		}
		c.onSequenceError(now)
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

// ackThrough handles an acknowledgement of all packets up to psn. It reports
// whether a read or atomic at or before psn is unanswered, which means that its
// response was lost.
func (c *Core) ackThrough(now reliability.Time, psn wire.PSN) (lost bool) {
	before, beforeUna := c.unackedBytes(), c.una
	for c.sq.head != c.sq.tail {
		w := c.sq.wqeAt(c.sq.head)
		if !w.started {
			break
		}
		if w.isLocal() {
			c.completeHead(w)
			continue
		}
		acked := psn.Sub(c.una) // -1 for PSNs before una, so that half of the PSN space is usable
		switch {
		case w.expectsResponse():
			lost = w.first.Sub(c.una) <= acked
		case w.last.Sub(c.una) <= acked:
			c.una = w.last.Add(1)
			c.completeHead(w)
			continue
		case acked >= 0:
			c.una = psn.Add(1)
		}
		break
	}
	if c.una != beforeUna {
		c.onProgress(now)
		c.onDataAcked(now, before, max(0, before-c.unackedBytes()))
	}
	c.checkDrained()
	return lost
}

// onProgress updates timers and window after an acknowledgement of new packets.
func (c *Core) onProgress(now reliability.Time) {
	if timed, ok := c.rtt.TimedPSN(); ok && timed.Less(c.una) {
		c.rtt.OnAck(now)
		if c.sel != nil {
			c.sel.order.Sample(now, c.rtt.Latest())
			if c.sel.reads != nil {
				c.sel.reads.order.Sample(now, c.rtt.Latest())
			}
		}
	}
	c.probing, c.lastRefusal = false, nil
	if c.retry.ProbeSent() { // a probed packet or its acknowledgement was lost
		c.cautious = cautiousMessages
	}
	if c.next.Less(c.una) {
		c.next = c.una
		c.skipSent()
	}
	c.ackReqInFlight = c.ackReqInFlight && c.una.LessEq(c.lastAckReq)
	c.retry.OnProgress(now, c.una != c.top, c.ackReqInFlight, &c.rtt)
}

// oldestUnanswered returns the first read or atomic that waits for its
// response, or nil.
func (c *Core) oldestUnanswered() *sendWQE {
	for i := c.sq.head; i != c.sq.tail; i++ {
		w := c.sq.wqeAt(i)
		if !w.started {
			return nil
		}
		if w.expectsResponse() && !w.done {
			return w
		}
	}
	return nil
}

// tailLost reports whether an acknowledgement at psn shows that the packets
// sent after an earlier probed packet are lost: the response to the probe would
// have acknowledged them. Without this check each packet of a lost tail would
// need a probe of its own.
func (c *Core) tailLost(psn wire.PSN) bool {
	if !c.probeUnanswered || psn.Less(c.probePSN) {
		return false
	}
	c.probeUnanswered = false
	return psn == c.probePSN && c.una.Less(c.resume)
}

// onSequenceError goes back to the oldest unacknowledged packet, unless a go-back
// for it is in progress.
func (c *Core) onSequenceError(now reliability.Time) {
	switch c.retry.OnSequenceNAK(now, c.una, &c.rtt) {
	case reliability.GiveUp:
		c.exhaustRetries(now)
	case reliability.GoBack:
		c.counters.CompleterRetryErr++
		c.onDataLost(now)
		c.onReadLost(now)
		c.cautious = cautiousMessages
		c.goBack()
	}
}

// exhaustRetries fails the oldest request because its retries are exhausted.
func (c *Core) exhaustRetries(now reliability.Time) {
	c.counters.RetryExceededErr++
	c.failUnanswered(now)
}

// handleReadResponse stores read data. It accepts any of FIRST, MIDDLE, LAST
// and ONLY at the expected PSN, because responders differ in the opcodes of a
// repeated response.
func (c *Core) handleReadResponse(now reliability.Time, p *wire.Packet) wire.Drop {
	w, d := c.matchResponse(now, p)
	if w == nil {
		return d
	}
	n := uint32(len(p.Payload))
	if hasEmptyResponse(w.op) && n == 0 {
		c.advanceResponse(now, p, w, w.length)
		return wire.DropNone
	}
	if w.op != verbs.WRRDMARead || n != min(c.mtu, w.length-w.got) {
		return c.rejectResponse(now, p, "the opcode or the length of the read response does not match the request")
	}
	if m := c.scatter(c.sq.sglAt(c.sq.head), w.got, p.Payload); !m.ok() {
		c.failLocal(now, w, m)
		return wire.DropNone
	}
	c.counters.RcvdBytes += uint64(n)
	c.advanceResponse(now, p, w, n)
	return wire.DropNone
}

// handleAtomicAck stores the original value of an atomic.
func (c *Core) handleAtomicAck(now reliability.Time, p *wire.Packet) wire.Drop {
	w, d := c.matchResponse(now, p)
	if w == nil {
		return d
	}
	if !w.isAtomic() {
		return c.rejectResponse(now, p, "atomic response to a request that is not an atomic")
	}
	var b [8]byte
	putHost(b[:], p.AtomicAckETH().Orig)
	if m := c.scatter(c.sq.sglAt(c.sq.head), 0, b[:]); !m.ok() {
		c.failLocal(now, w, m)
		return wire.DropNone
	}
	c.advanceResponse(now, p, w, w.length)
	return wire.DropNone
}

// matchResponse returns the read or atomic that response p continues. It is the
// head of the send queue, because a response acknowledges all requests before
// it. Without one, the result is nil and the drop reason.
func (c *Core) matchResponse(now reliability.Time, p *wire.Packet) (*sendWQE, wire.Drop) {
	w := c.oldestUnanswered()
	if w == nil {
		if p.BTH.PSN.Less(c.una) {
			return nil, wire.DropDuplicate
		}
		return nil, c.rejectResponse(now, p, "read response to a request without data")
	}
	ahead := p.BTH.PSN.Sub(w.first.Add(int(w.got / c.mtu)))
	if ahead < 0 {
		return nil, wire.DropDuplicate
	}
	c.ackThrough(now, w.first.Add(-1))
	if ahead > 0 { // the response packets in between were lost
		c.onSequenceError(now)
		return nil, wire.DropOutOfSequence
	}
	return w, wire.DropNone
}

// advanceResponse records that p brought n bytes for w, the head of the queue.
func (c *Core) advanceResponse(now reliability.Time, p *wire.Packet, w *sendWQE, n uint32) {
	if p.Info.AETH {
		aeth := p.AETH()
		c.credits.Update(aeth.Syndrome.Value(), aeth.MSN)
	}
	inFlight := int(c.rdBytes)
	c.countReads(c.sq.head, -1)
	w.got += n
	w.done = w.got == w.length
	c.countReads(c.sq.head, 1)
	c.una = p.BTH.PSN.Add(1)
	c.completeReady(now)
	c.onProgress(now)
	c.onReadArrived(now, inFlight, int(n))
}

// rejectResponse fails the oldest request because of a response that contradicts
// it.
func (c *Core) rejectResponse(now reliability.Time, p *wire.Packet, mismatch string) wire.Drop {
	if c.sq.head == c.sq.tail || !c.sq.wqeAt(c.sq.head).started {
		return wire.DropGhostResponse
	}
	c.failResponse(now, p, mismatch)
	return wire.DropNone
}
