package qp

import (
	"slices"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// resendLost builds the packets that are lost, as far as window and batch permit, before new ones
// are sent.
func (c *Core) resendLost(now reliability.Time, out Out) outcome {
	s := c.sel
	if s.probe && c.una != c.top {
		if o := c.resendProbe(now, out); o != sent {
			return o
		}
	}
	s.probe = false
	for {
		p, ok := s.requests.NextLost(c.una, c.top)
		if !ok {
			break
		}
		i, w := c.requestAt(p)
		if w == nil {
			s.requests.Unlose(p)
			continue
		}
		// The oldest packet always fits: lost READs after it count as in flight.
		if !w.expectsResponse() && (!c.mayPace(now) || p != c.una && !c.windowAllows(c.bytesInFlight(), c.packetBytes(w, p))) {
			return blocked
		}
		if o := c.resendRequest(now, out, i, w, p, false); o != sent {
			return o
		}
		if !w.expectsResponse() && (s.requests.IsLostAgain(p) || c.isStalled()) {
			c.resendCopy(now, out, i, w, p)
		}
	}
	for {
		p, ok := s.responses.NextLost(c.una, c.top)
		if !ok {
			return sent
		}
		i, w := c.requestAt(p)
		if w == nil {
			s.responses.Unlose(p)
			continue
		}
		if hasEmptyResponse(w.op) {
			if o := c.resendEmptyRead(now, out, i, w, p, false); o != sent {
				return o
			}
			continue
		}
		psns := 1
		for !c.isRequestPacket(w, p.Add(psns)) && s.responses.IsLost(p.Add(psns)) && p.Add(psns).LessEq(w.last) {
			psns++
		}
		again := s.responses.IsLostAgain(p) || c.isStalled()
		if o := c.resendRead(now, out, w, p, psns, false); o != sent {
			return o
		}
		if again { // both are answered
			c.requestCopy(now, out, w, p, psns, false)
		}
	}
}

// resendProbe sends the oldest packet again. Its acknowledgement or response shows which packets
// that were sent before are lost.
func (c *Core) resendProbe(now reliability.Time, out Out) outcome {
	i, w := c.requestAt(c.una)
	if w == nil {
		return sent
	}
	if w.expectsResponse() && !hasEmptyResponse(w.op) && c.una.Less(c.sel.executed) {
		return c.resendRead(now, out, w, c.una, 1, true)
	}
	if !w.expectsResponse() && !c.mayPace(now) {
		return blocked
	}
	return c.resendRequest(now, out, i, w, c.una, true)
}

// resendRequest sends the request packet p of w, request i, again. If it requests a READ, that is
// the part of it that one request covers.
func (c *Core) resendRequest(now reliability.Time, out Out, i uint32, w *sendWQE, p wire.PSN, probe bool) outcome {
	s := c.sel
	if hasEmptyResponse(w.op) {
		return c.resendEmptyRead(now, out, i, w, p, probe)
	}
	if w.expectsResponse() {
		psns := 1
		for p.Add(psns).LessEq(w.last) && !c.isRequestPacket(w, p.Add(psns)) {
			psns++
		}
		if w.op != verbs.WRRDMARead {
			psns = 1
		}
		op, ok := c.putResponseRequest(out, w, p, psns)
		if !ok {
			return full
		}
		if !w.isAtomic() {
			c.putReadCopy(now, out, w, p, psns)
		}
		s.activeRequests(c.una).OnResent(now, p, probe)
		c.onResent(now, op, p, probe)
		return sent
	}
	info, o := c.rebuildData(now, out, i, w, p)
	if o != sent {
		return o
	}
	switch n := c.packetBytes(w, p); {
	case s.requests.IsLost(p):
		s.lostBytes -= n
	case s.requests.HasArrived(p):
		s.arrivedBytes -= n
	}
	s.activeRequests(c.una).OnResent(now, p, probe)
	c.onResent(now, info.Opcode, p, probe)
	return sent
}

// rebuildData builds the packet p of w, request i, a SEND or WRITE, which was sent before.
func (c *Core) rebuildData(now reliability.Time, out Out, i uint32, w *sendWQE, p wire.PSN) (*wire.Info, outcome) {
	cur, next := c.cur, c.next
	c.cur, c.next = i, p
	off := uint32(p.Sub(w.first)) * c.mtu
	n := min(c.mtu, w.length-off)
	info, o := c.buildData(now, out, w, off, n, true, false)
	if c.state != sRTS && c.state != sSQD {
		return info, blocked // the source failed, and the queue pair with it
	}
	c.cur, c.next = cur, next
	if o == sent {
		c.onDataSent(now, int(n), false)
	}
	return info, o
}

// isStalled reports whether no new packet may be sent before the oldest one is acknowledged.
func (c *Core) isStalled() bool {
	return !c.spanAllows(1) || c.rdOut > 0 && int(c.rdOut) >= c.readDepth(c.attr.MaxRdAtomic)
}

// resendCopy sends p, which was just sent again, once more, if the batch has space. It is for packets
// of which a retransmission was lost, and for those without which no other may be sent: all later ones
// wait at the peer for it, and each further attempt takes a round trip, or more if nothing is sent
// that would show its loss.
func (c *Core) resendCopy(now reliability.Time, out Out, i uint32, w *sendWQE, p wire.PSN) {
	if info, o := c.rebuildData(now, out, i, w, p); o == sent {
		c.sel.copies++
		c.onResent(now, info.Opcode, p, false)
	}
}

// resendEmptyRead sends the FLUSH or ATOMIC WRITE w, request i, again.
func (c *Core) resendEmptyRead(now reliability.Time, out Out, i uint32, w *sendWQE, p wire.PSN, probe bool) outcome {
	cur := c.cur
	c.cur = i
	info, o := c.putEmptyRead(now, out, w, p)
	if c.state != sRTS && c.state != sSQD {
		return blocked // the source failed, and the queue pair with it
	}
	c.cur = cur
	if o != sent {
		return o
	}
	if c.sel.responses.IsLost(p) {
		c.sel.responses.OnResent(now, p, probe)
	} else {
		c.sel.activeRequests(c.una).OnResent(now, p, probe)
	}
	c.onResent(now, info.Opcode, p, probe)
	return sent
}

// resendRead requests psns packets of the response to w again.
func (c *Core) resendRead(now reliability.Time, out Out, w *sendWQE, p wire.PSN, psns int, probe bool) outcome {
	op, ok := c.putResponseRequest(out, w, p, psns)
	if !ok {
		return full
	}
	for k := range psns {
		c.sel.activeResponses(now, c.una).OnResent(now, p.Add(k), probe)
	}
	if !w.isAtomic() && !probe {
		c.requestCopy(now, out, w, p, psns, true)
	}
	c.onResent(now, op, p, probe)
	return sent
}

// putResponseRequest builds the request for psns packets of the response to w, a READ or atomic,
// from PSN p on. It reports false if the batch is full.
func (c *Core) putResponseRequest(out Out, w *sendWQE, p wire.PSN, psns int) (wire.Opcode, bool) {
	if w.isAtomic() {
		return c.putAtomic(out, w, p)
	}
	off := uint32(p.Sub(w.first)) * c.mtu
	return wire.RCReadRequest, c.putRead(out, w, p, off, min(uint32(psns)*c.mtu, w.length-off), false)
}

// putReadCopy sends the READ request of psns packets from p again at once while losses are likely: if
// it were lost, all responses after it would stop for a round trip. A long one is sent three times.
func (c *Core) putReadCopy(now reliability.Time, out Out, w *sendWQE, p wire.PSN, psns int) {
	if c.sel == nil || !c.sel.recovering {
		return
	}
	c.requestCopy(now, out, w, p, psns, true)
	if psns >= longRead {
		c.requestCopy(now, out, w, p, psns, true)
	}
}

// longRead is the number of packets of a READ from which its request is sent three times.
const longRead = 4

// requestCopy builds a further request for psns packets of the response to w, if the batch has space.
// If marked is set, it has the solicited event bit, which no READ has otherwise, so that a responder
// with selective retransmission ignores it if the first one has arrived.
func (c *Core) requestCopy(now reliability.Time, out Out, w *sendWQE, p wire.PSN, psns int, marked bool) {
	off := uint32(p.Sub(w.first)) * c.mtu
	if c.putRead(out, w, p, off, min(uint32(psns)*c.mtu, w.length-off), marked) {
		c.recorder.addPacket(now, true, wire.RCReadRequest, p, 0)
		c.counters.SentPkts++
	}
}

// onServed records that a READ request from p on is served.
func (s *selective) onServed(p wire.PSN) {
	s.served[s.serves%len(s.served)] = p
	s.serves++
}

// hasServed reports whether a READ request from p on was one of the last ones served.
func (s *selective) hasServed(p wire.PSN) bool {
	return slices.Contains(s.served[:min(s.serves, len(s.served))], p)
}

// isCopy reports whether p is a request that requestCopy has built and marked.
func isCopy(p *wire.Packet) bool { return p.BTH.SE && p.Info.Operation == wire.OpReadRequest }

// onResent records a retransmission.
func (c *Core) onResent(now reliability.Time, op wire.Opcode, p wire.PSN, probe bool) {
	c.recorder.addPacket(now, true, op, p, 0)
	c.counters.SentPkts++
	c.counters.Retransmitted++
	c.sel.resent = true
	c.stopTiming(probe)
	if !c.ackReqInFlight || c.lastAckReq.Less(p) {
		c.lastAckReq, c.ackReqInFlight = p, true
	}
	c.retry.OnSent(now, true, &c.rtt)
}
