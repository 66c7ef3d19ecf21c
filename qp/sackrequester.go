package qp

import (
	"math/bits"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// handleSelectiveAck handles a selective acknowledgement. One that reports packets which are not in
// flight changes nothing.
func (c *Core) handleSelectiveAck(now reliability.Time, p *wire.Packet) wire.Drop {
	ack := &c.sel.pool.ack
	if !ack.Parse(p.Payload) || !c.validBlocks(p.BTH.PSN, ack) {
		return wire.DropGhostResponse
	}
	c.counters.RcvdSacks++
	c.acceptAck(now, p)
	c.applyBlocks(now, ack)
	c.afterArrivals(now)
	return wire.DropNone
}

// acceptAck handles the AETH of an acknowledgement, with selective retransmission.
func (c *Core) acceptAck(now reliability.Time, p *wire.Packet) {
	aeth := p.AETH()
	c.credits.Update(aeth.Syndrome.Value(), aeth.MSN)
	if c.credits.PeerAdvertises() && aeth.Syndrome.Value() != 0 {
		c.retry.EndRNRWait(now, &c.rtt)
	}
	c.advanceExecuted(now, p.BTH.PSN.Add(1))
}

// validBlocks reports whether all packets of ack, an acknowledgement up to psn, are in flight and
// after psn+1, which the peer expects.
func (c *Core) validBlocks(psn wire.PSN, ack *wire.SelectiveAck) bool {
	for _, b := range ack.Blocks {
		lowest := b.PSN.Add(bits.TrailingZeros64(b.Arrived))
		highest := b.PSN.Add(63 - bits.LeadingZeros64(b.Arrived))
		if lowest.Sub(psn) < 2 || !highest.Less(c.top) || lowest.Sub(psn) > reliability.MaxSpan {
			return false
		}
	}
	return true
}

// applyBlocks records the packets of ack.
func (c *Core) applyBlocks(now reliability.Time, ack *wire.SelectiveAck) {
	s := c.sel
	if n := ack.Duplicates - s.duplicates; n > 0 {
		s.duplicates = ack.Duplicates
		expected := min(n, s.copies)
		s.copies -= expected
		if n > expected && s.resent {
			s.resent = false
			s.order.OnSpurious(now, c.rtt.Smoothed())
		}
	}
	for _, b := range ack.Blocks {
		for w := b.Arrived; w != 0; w &= w - 1 {
			if psn := b.PSN.Add(bits.TrailingZeros64(w)); s.executed.Less(psn) {
				c.onRequestArrived(now, psn)
			}
		}
	}
}

// onRequestArrived records that the request packet psn has arrived at the peer.
func (c *Core) onRequestArrived(now reliability.Time, psn wire.PSN) {
	s := c.sel
	_, w := c.requestAt(psn)
	if w == nil {
		return
	}
	lost := s.requests.IsLost(psn)
	if !s.activeRequests(c.una).OnArrived(now, psn) || w.expectsResponse() {
		return
	}
	n := c.packetBytes(w, psn)
	s.arrivedBytes += n
	s.delivered += n
	if lost {
		s.lostBytes -= n
	}
}

// advanceExecuted records that the peer has executed all requests before psn.
func (c *Core) advanceExecuted(now reliability.Time, psn wire.PSN) {
	s := c.sel
	if !s.executed.Less(psn) {
		return
	}
	if s.requests.Active() {
		for p := s.executed; p.Less(psn); p = p.Add(1) {
			c.onRequestArrived(now, p)
		}
	}
	s.executed = psn
	c.advanceUna(now)
}

// advanceUna moves una past all packets that are executed and answered, and completes their
// requests.
func (c *Core) advanceUna(now reliability.Time) {
	s := c.sel
	before, beforeUna := c.unackedBytes(), c.una
	for c.sq.head != c.sq.tail {
		w := c.sq.wqeAt(c.sq.head)
		if !w.started {
			break
		}
		switch {
		case w.isLocal():
		case w.expectsResponse():
			for c.una.LessEq(w.last) && s.responses.HasArrived(c.una) {
				c.absorbResponse(now, w)
			}
			if !w.done {
				w = nil
			}
		case w.last.Less(s.executed):
			c.releaseBytes(w, w.last.Add(1))
		default:
			if c.una.Less(s.executed) {
				c.releaseBytes(w, s.executed)
			}
			w = nil
		}
		if w == nil {
			break
		}
		c.completeHead(w)
	}
	if c.una != beforeUna {
		n := max(0, before-c.unackedBytes())
		c.onDataAcked(now, before, n)
		s.delivered += n
		s.advanceScoreboards(c.una)
		c.checkRecovered()
		c.onProgress(now)
	}
	c.checkDrained()
}

// absorbResponse records that the response packet at una, which belongs to w, the head of the
// queue, was received.
func (c *Core) absorbResponse(now reliability.Time, w *sendWQE) {
	inFlight := int(c.rdBytes)
	c.countReads(c.sq.head, -1)
	n := w.length
	if w.op == verbs.WRRDMARead {
		n = min(c.mtu, w.length-w.got)
		c.onReadArrived(now, inFlight, int(n))
	}
	w.got += n
	w.done = w.got == w.length
	c.countReads(c.sq.head, 1)
	c.una = c.una.Add(1)
}

// releaseBytes moves una, which is in the SEND or WRITE w, to end.
func (c *Core) releaseBytes(w *sendWQE, end wire.PSN) {
	s := c.sel
	if s.arrivedBytes|s.lostBytes != 0 {
		for p := c.una; p.Less(end); p = p.Add(1) {
			switch {
			case s.requests.IsLost(p):
				s.lostBytes -= c.packetBytes(w, p)
			case s.requests.HasArrived(p):
				n := c.packetBytes(w, p)
				s.arrivedBytes -= n
				s.delivered -= n // counted before
			}
		}
	}
	c.una = end
}

// afterArrivals updates the estimates of the path and looks for losses, after packets have arrived
// at the peer.
func (c *Core) afterArrivals(now reliability.Time) {
	s := c.sel
	if n := s.delivered; n > 0 {
		s.delivered = 0
		s.bandwidth.OnArrived(now, n, c.rtt.Smoothed())
		s.losses.arrived += n
		if s.requests.Active() && !c.retry.InRNRWait() {
			// A delay that is too short would make congestion control grow a queue.
			if rtt, resent := s.requests.NewestRTT(); !resent || c.sending == nil {
				c.rtt.Sample(rtt)
			}
			c.retry.OnProgress(now, c.una != c.top, true, &c.rtt)
		}
	}
	c.detectLosses(now)
}

// detectLosses finds the packets that are lost.
func (c *Core) detectLosses(now reliability.Time) {
	s := c.sel
	if s.requests.Active() {
		for _, p := range s.requests.Detect(now, c.top) {
			c.onRequestLost(now, p)
		}
	}
	if s.responses.Active() {
		for _, p := range s.responses.Detect(now, s.executed) {
			if _, w := c.requestAt(p); w == nil || !w.expectsResponse() {
				s.responses.Unlose(p)
				continue
			}
			c.onLoss()
			if c.reading != nil {
				c.onReadLost(now)
			}
		}
	}
	if c.sending == nil && s.losses.exceeded(now, c.rtt.Smoothed(), 64*int(c.mtu)) {
		c.onDataLost(now)
		s.bandwidth.OnCongestion()
	}
}

// onRequestLost records that the request packet p is lost, unless there is none. Congestion control
// has rules of its own for random losses, and flows that fill a buffer shrink only on loss.
func (c *Core) onRequestLost(now reliability.Time, p wire.PSN) {
	s := c.sel
	_, w := c.requestAt(p)
	if w == nil || p.Less(s.executed) || !c.isRequestPacket(w, p) {
		s.requests.Unlose(p)
		return
	}
	if !w.expectsResponse() {
		n := c.packetBytes(w, p)
		s.lostBytes += n
		s.losses.lost += n
		if c.sending != nil {
			c.onDataLost(now)
		}
	}
	c.onLoss()
}

// loseRequest makes the request packet p be sent again, although it may have arrived: the peer was
// not ready for it.
func (c *Core) loseRequest(p wire.PSN) {
	s := c.sel
	_, w := c.requestAt(p)
	if w == nil {
		return
	}
	arrived := s.requests.HasArrived(p)
	if s.activeRequests(c.una).Lose(p) && !w.expectsResponse() {
		n := c.packetBytes(w, p)
		s.lostBytes += n
		if arrived {
			s.arrivedBytes -= n
		}
	}
}

// loseAll makes all packets in flight be sent again, also those that have arrived according to the
// peer.
func (c *Core) loseAll(now reliability.Time) {
	s := c.sel
	s.activeRequests(c.una).Forget(c.top, false)
	s.activeResponses(now, c.una).Forget(c.top, true)
	s.arrivedBytes, s.lostBytes, s.probe = 0, 0, false
	c.onLoss()
	for p := c.una; p.Less(c.top); p = p.Add(1) {
		_, w := c.requestAt(p)
		switch {
		case w == nil:
		case !p.Less(s.executed):
			if c.isRequestPacket(w, p) {
				c.loseRequest(p)
			}
		case w.expectsResponse() && !s.responses.HasArrived(p):
			s.activeResponses(now, c.una).Lose(p)
		}
	}
}

// partEnd returns the PSN after the last one of the response to the request packet of w to which the
// response packet p belongs. The peer has executed that request.
func (c *Core) partEnd(w *sendWQE, p wire.PSN) wire.PSN {
	p = p.Add(1)
	for p.LessEq(w.last) && !c.isRequestPacket(w, p) {
		p = p.Add(1)
	}
	return p
}

// handleSelectiveResponse stores the response of a READ or atomic, in any order.
func (c *Core) handleSelectiveResponse(now reliability.Time, p *wire.Packet) wire.Drop {
	s, psn := c.sel, p.BTH.PSN
	if psn.Less(c.una) {
		return wire.DropDuplicate
	}
	i, w := c.requestAt(psn)
	if w == nil || !w.expectsResponse() {
		return c.rejectResponse(now, p, "read response to a request without data")
	}
	off := uint32(psn.Sub(w.first)) * c.mtu
	isAtomic := p.Info.Operation == wire.OpAtomicAck
	switch {
	case isAtomic && !w.isAtomic():
		return c.rejectResponse(now, p, "atomic response to a request that is not an atomic")
	case !isAtomic && hasEmptyResponse(w.op) && len(p.Payload) == 0:
	case !isAtomic && (w.op != verbs.WRRDMARead || uint32(len(p.Payload)) != min(c.mtu, w.length-off)):
		return c.rejectResponse(now, p, "the opcode or the length of the read response does not match the request")
	case s.responses.HasArrived(psn):
		return wire.DropDuplicate
	}
	c.advanceExecuted(now, c.partEnd(w, psn))
	payload := p.Payload
	var original [8]byte
	if isAtomic {
		putHost(original[:], p.AtomicAckETH().Orig)
		payload = original[:]
	}
	if m := c.scatter(c.sq.sglAt(i), off, payload); !m.ok() {
		if i != c.sq.head {
			return wire.DropOutOfSequence // it fails when it is the oldest
		}
		c.failLocal(now, w, m)
		return wire.DropNone
	}
	if p.Info.AETH {
		aeth := p.AETH()
		c.credits.Update(aeth.Syndrome.Value(), aeth.MSN)
	}
	c.counters.RcvdBytes += uint64(len(p.Payload))
	if psn == c.una && !s.responses.Active() {
		c.absorbResponse(now, w)
		s.advanceScoreboards(c.una)
		c.checkRecovered()
		c.completeReady(now)
		c.onProgress(now)
	} else {
		s.activeResponses(now, c.una).OnArrived(now, psn)
	}
	c.advanceUna(now)
	s.responsePath(now).bandwidth.OnArrived(now, len(p.Payload), c.rtt.Smoothed())
	c.afterArrivals(now)
	return wire.DropNone
}
