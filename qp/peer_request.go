package qp

import (
	"fmt"
	"math/bits"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

const (
	maxReadPackets = 16 // maximum response packets per read request
	sendQuota      = 16 // packets per peer and scheduling round
)

// sendRDMA builds request packets, peer by peer in round-robin order, and
// reports whether the batch is full.
func (c *Core) sendRDMA(now reliability.Time, out Out) bool {
	if c.state != sRTS && c.state != sSQD {
		return false
	}
	for r := c.rdma; r.active.Len() > 0; {
		p := *r.active.Front()
		result := sent
		for i := 0; i < sendQuota && result == sent; i++ {
			result = p.sendNext(now, out)
		}
		if result == full {
			return true
		}
		p.active = result == sent
		r.active.Pop()
		if p.active {
			r.active.Push(p)
		}
	}
	return false
}

// sendNext builds the next request packet of a peer, if one may be sent.
// Retransmissions go first.
func (p *Peer) sendNext(now reliability.Time, out Out) outcome {
	if p.lostSlots > 0 {
		for psn := p.una; psn != p.next; psn = psn.Add(1) {
			if s := p.slotFor(psn); s.op != nil && s.lost {
				if !p.checkReadable(s) {
					p.retireSlot(s)
					p.advanceUna(now)
					return sent
				}
				result := p.buildPacket(now, out, psn, s)
				if result == blocked { // the source memory cannot be read
					p.retireSlot(s)
					p.advanceUna(now)
					return sent
				}
				return result
			}
		}
	}
	if p.waiting.Len() == 0 || p.next.Sub(p.una) >= reliability.ReplayWindow || p.core.state == sSQD && !(*p.waiting.Front()).started {
		return blocked
	}
	o := *p.waiting.Front()
	if o.status != verbs.WCSuccess { // a packet of the operation has failed
		p.waiting.Pop()
		if o.slots == 0 {
			p.completeOp(o)
			p.releaseIdle()
		}
		return sent
	}
	if o.flags&verbs.SendFence != 0 && !o.started && p.outstanding > p.waiting.Len() {
		if p.ackReqsInFlight > 0 || p.lostSlots > 0 {
			return blocked
		}
		p.declareLost(p.oldestUnanswered()) // its retransmission requests an acknowledgement
		return sent
	}
	if p.flight == nil {
		p.allocFlight()
	}
	r := p.core.rdma
	s := slot{op: o, off: o.bytesIssued}
	switch {
	case o.op == verbs.WRRDMAWrite:
		s.n = min(p.mtu, o.length-o.bytesIssued)
	case o.op == verbs.WRRDMARead:
		s.n = min(maxReadPackets*p.mtu, o.length-o.bytesIssued)
		if !p.core.readWindow.Allows(r.readBytes, int(s.n)) {
			if !p.waitsForReads {
				p.waitsForReads = true
				r.readWaiters = append(r.readWaiters, p)
			}
			return blocked
		}
	default:
		s.n = 8
	}
	if !p.window.Allows(p.inFlight, p.windowCost(o, &s)) {
		return blocked
	}
	if !p.checkReadable(&s) {
		return sent
	}
	psn := p.next
	slotAt := p.slotFor(psn)
	*slotAt = s
	slotAt.lost = true // until it is sent
	p.lostSlots++
	switch p.buildPacket(now, out, psn, slotAt) {
	case full:
		p.lostSlots--
		*slotAt = slot{}
		return full
	case blocked: // the source memory cannot be read
		p.lostSlots--
		*slotAt = slot{}
		return sent
	}
	p.next = psn.Add(1)
	o.slots++
	o.started = true
	if o.bytesIssued += s.n; o.bytesIssued >= o.length {
		p.waiting.Pop()
	}
	if o.op == verbs.WRRDMARead {
		r.readBytes += int(s.n)
	}
	return sent
}

func (p *Peer) allocFlight() {
	r := p.core.rdma
	if n := len(r.freeFlights); n > 0 {
		p.flight, r.freeFlights = r.freeFlights[n-1], r.freeFlights[:n-1]
		return
	}
	p.flight = new([reliability.ReplayWindow]slot)
}

// checkReadable checks that the source of a write may be read. If not, it fails
// the operation.
func (p *Peer) checkReadable(s *slot) bool {
	o := s.op
	if o.op != verbs.WRRDMAWrite || len(o.inline) > 0 {
		return true
	}
	m := p.core.checkList(o.sgl, s.off, s.n, false)
	if !m.ok() {
		o.setFailure(verbs.WCLocProtErr, localFailure(m))
	}
	return m.ok()
}

func localFailure(m memFault) *verbs.Failure {
	return &verbs.Failure{Event: "local memory cannot be accessed: " + m.fault.String(),
		Key: m.sge.LKey, Addr: m.sge.Addr, Length: m.sge.Length, Cause: localCause(m.fault)}
}

// buildPacket builds the packet of a slot for its first transmission or a
// retransmission. If the source cannot be read, it fails the operation and
// returns blocked.
func (p *Peer) buildPacket(now reliability.Time, out Out, psn wire.PSN, s *slot) outcome {
	c, o := p.core, s.op
	op := wire.UDXWriteOnly
	switch o.op {
	case verbs.WRRDMARead:
		op = wire.UDXReadRequest
	case verbs.WRAtomicCmpSwap:
		op = wire.UDXCmpSwap
	case verbs.WRAtomicFetchAdd:
		op = wire.UDXFetchAdd
	}
	payload := 0
	if op == wire.UDXWriteOnly {
		payload = int(s.n)
	}
	info := op.Info()
	pad := wire.PadFor(payload)
	b := out.Next(&p.path, info.HeaderLen+payload+pad+wire.ICRCLen)
	if b == nil {
		return full
	}
	if op == wire.UDXWriteOnly {
		body := b[info.HeaderLen : info.HeaderLen+payload+pad]
		if len(o.inline) > 0 {
			copy(body, o.inline[s.off:s.off+s.n])
		} else if m := c.gather(body[:payload], o.sgl, s.off); !m.ok() {
			out.Cancel()
			o.setFailure(verbs.WCLocProtErr, localFailure(m))
			return blocked
		}
		clear(body[payload:])
	}
	s.ackReq = p.wantsAck(s)
	p.putHeaders(b, op, pad, psn, s.ackReq)
	h := b[wire.BTHLen+wire.DETHLen:]
	va := o.remote + uint64(s.off)
	switch op {
	case wire.UDXWriteOnly:
		wire.RETH{VA: va, RKey: o.rkey, Length: s.n}.Put(h)
		c.counters.SentBytes += uint64(payload)
	case wire.UDXReadRequest:
		first, n := p.missingRange(s)
		wire.RETH{VA: va + uint64(first), RKey: o.rkey, Length: n}.Put(h)
	case wire.UDXCmpSwap:
		wire.AtomicETH{VA: va, RKey: o.rkey, SwapAdd: o.swap, Compare: o.operand}.Put(h)
	default:
		wire.AtomicETH{VA: va, RKey: o.rkey, SwapAdd: o.operand}.Put(h)
	}
	p.onPacketSent(now, op, psn, s)
	return sent
}

// wantsAck reports whether the packet of a slot requests an immediate
// acknowledgement, like Core.wantsAck. Of the writes, retransmissions do, the
// last packet of an operation unless it has SendDelayAck, and every n-th packet, so
// that neither window is exhausted before an acknowledgement arrives.
func (p *Peer) wantsAck(s *slot) bool {
	c, o := p.core, s.op
	if o.op != verbs.WRRDMAWrite || s.sentAt != 0 || p.cautious > 0 {
		p.sinceAckReq = 0
		p.cautious -= min(p.cautious, 1)
		return true
	}
	every := min(maxWithoutAckReq, max(1, p.window.Size()/4/int(p.mtu)))
	last := s.off+s.n >= o.length
	urgent := o.flags&verbs.SendDelayAck == 0 || 2*c.rdma.ops >= c.rdma.maxOps
	if p.sinceAckReq++; int(p.sinceAckReq) >= every || last && urgent || !p.window.Allows(p.inFlight+p.windowCost(o, s), int(p.mtu)+PacketCost) {
		p.sinceAckReq = 0
		return true
	}
	return false
}

// putHeaders writes BTH and DETH of a packet to the peer.
func (p *Peer) putHeaders(b []byte, op wire.Opcode, pad int, psn wire.PSN, ackReq bool) {
	bth := wire.BTH{Opcode: op, AckReq: ackReq, Pad: uint8(pad), PKey: p.core.pkey, DestQPN: p.qpn, PSN: psn}
	bth.Put(b)
	wire.DETH{QKey: p.remoteToken, SrcQPN: p.core.num}.Put(b[wire.BTHLen:])
	p.core.counters.SentPkts++
}

// onPacketSent updates the state after the packet of a slot was built.
func (p *Peer) onPacketSent(now reliability.Time, op wire.Opcode, psn wire.PSN, s *slot) {
	c := p.core
	c.recorder.addPacket(now, true, op, psn, 0)
	if s.sentAt != 0 {
		s.retransmitted = true
		c.counters.Retransmitted++
		p.rtt.StopTiming()
	} else if s.ackReq {
		p.rtt.OnSent(now, psn)
	}
	if p.inFlight == 0 && p.deadline == 0 {
		p.lastProgress = now
	}
	s.lost, s.sentAt, s.txNum = false, now, p.txNum
	p.lostSlots--
	p.txNum++
	p.inFlight += p.windowCost(s.op, s)
	if s.ackReq {
		p.ackReqsInFlight++
	}
	if p.deadline == 0 || s.ackReq && p.ackReqsInFlight == 1 {
		p.setDeadline(now)
	}
}

// responsePackets returns the number of response packets of a read slot.
func (p *Peer) responsePackets(s *slot) uint32 { return max(1, (s.n+p.mtu-1)/p.mtu) }

// missingRange returns the byte range of a read slot from the first to the last
// missing response packet.
func (p *Peer) missingRange(s *slot) (first, n uint32) {
	all := uint32(1)<<p.responsePackets(s) - 1
	missing := all &^ s.received
	lo, hi := uint32(bits.TrailingZeros32(missing)), uint32(bits.Len32(missing))
	return lo * p.mtu, min(hi*p.mtu, s.n) - lo*p.mtu
}

// setDeadline sets the time of the next probe of the oldest request.
func (p *Peer) setDeadline(now reliability.Time) {
	after := p.rtt.ProbeTimeout()
	if p.ackReqsInFlight == 0 {
		after = max(after, reliability.DelayedAckProbe)
	}
	p.deadline = now + reliability.Time(min(after<<min(p.timeouts, 6), 320*reliability.Millisecond))
	r := p.core.rdma
	r.deadline = reliability.Earlier(r.deadline, p.deadline)
}

// advanceRDMA handles the timers that are due.
func (c *Core) advanceRDMA(now reliability.Time) {
	r := c.rdma
	if r.deadline == 0 || now < r.deadline {
		return
	}
	r.scheduleDueAcks(now)
	for i := len(r.busy) - 1; i >= 0; i-- { // onTimer may remove p from the list
		if p := r.busy[i]; p.deadline != 0 && p.deadline <= now {
			p.onTimer(now)
		}
	}
	r.deadline = 0
	if r.delayedAcks.Len() > 0 {
		r.deadline = r.delayedAcks.Front().at
	}
	for _, p := range r.busy {
		r.deadline = reliability.Earlier(r.deadline, p.deadline)
	}
}

// onTimer retransmits the oldest request as a probe: the response shows which
// other packets are lost. After giveUp nanoseconds it fails all operations. The
// time by which the call is late does not count, because the process did not
// run or did not read packets that had arrived.
func (p *Peer) onTimer(now reliability.Time) {
	c := p.core
	if p.inFlight == 0 && p.lostSlots == 0 {
		p.deadline = 0
		return
	}
	p.lastProgress += now - p.deadline
	if int64(now-p.lastProgress) >= p.giveUp {
		c.counters.RetryExceededErr++
		f := &verbs.Failure{
			Event: fmt.Sprintf("no response from %v", p.path.Dst), Cause: "the peer has terminated, or does not have this connection",
		}
		if p.lastRefusal != nil {
			f = p.lastRefusal.Failure()
		}
		f.PSN, f.Retries = uint32(p.una), int(p.timeouts)
		p.failAll(verbs.WCRetryExcErr, f)
		return
	}
	p.attemptRefused = false
	p.timeouts = min(p.timeouts+1, 100)
	c.counters.Timeouts++
	if p.timeouts == 2 {
		p.window.OnTimeout(now)
	}
	p.cautious = cautiousMessages
	p.declareLost(p.oldestUnanswered())
	p.setDeadline(now)
	p.markActive()
}

// oldestUnanswered returns the slot of the oldest request in flight. There must
// be one.
func (p *Peer) oldestUnanswered() *slot {
	psn := p.una
	for p.slotFor(psn).op == nil {
		psn = psn.Add(1)
	}
	return p.slotFor(psn)
}

// declareLost marks the packet of a slot, or its response, as lost.
func (p *Peer) declareLost(s *slot) {
	if !s.lost {
		s.lost = true
		p.lostSlots++
		p.removeFromWindow(s)
	}
}

// markAlive records a response at now, and clears the timeout count and the
// probe deadline.
func (p *Peer) markAlive(now reliability.Time) {
	p.lastProgress, p.timeouts, p.deadline = now, 0, 0
	p.lastRefusal, p.refusals, p.attemptRefused = nil, 0, false
}

// completeSlot retires a slot whose response is complete.
func (p *Peer) completeSlot(now reliability.Time, psn wire.PSN, s *slot) {
	if timed, ok := p.rtt.TimedPSN(); ok && timed == psn && !s.retransmitted {
		p.rtt.OnAck(now)
	} else if ok && timed == psn {
		p.rtt.StopTiming()
	}
	p.window.OnAck(p.windowCost(s.op, s))
	p.retireSlot(s)
	p.advanceUna(now)
}

// advanceUna moves una past answered requests.
func (p *Peer) advanceUna(now reliability.Time) {
	for p.una != p.next && p.slotFor(p.una).op == nil {
		p.una = p.una.Add(1)
	}
	if p.outstanding == 0 {
		p.releaseIdle()
		return
	}
	p.markActive()
}

// detectLosses declares lost all reads and atomics sent before the answered
// packet with transmission number order: their responses would have arrived
// earlier.
func (p *Peer) detectLosses(now reliability.Time, order uint32) {
	found := false
	for psn := p.una; psn != p.next; psn = psn.Add(1) {
		s := p.slotFor(psn)
		if s.op == nil || s.lost || s.op.op == verbs.WRRDMAWrite || int32(order-s.txNum) <= 0 {
			continue
		}
		p.declareLost(s)
		found = true
	}
	if found {
		p.core.readWindow.OnLoss(now, max(p.rtt.Smoothed(), reliability.Millisecond))
		p.markActive()
	}
}
