package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// rc is the reliable connection: the requester retransmits until the responder acknowledges
// (requester.go, response.go, responder.go).
type rc struct{ *Core }

func (t rc) postRequest(wr *verbs.SendWR) error { return t.postConnected(wr) }
func (t rc) inFlight() int                      { return t.unackedBytes() }
func (t rc) hasOutstanding() bool               { return false }
func (t rc) afterFailure(now reliability.Time)  { t.setState(now, sErr) }
func (t rc) flush()                             {}
func (t rc) reset()                             {}

// mayStart implements transport: w waits for a credit.
func (t rc) mayStart(w *sendWQE) bool {
	if t.credits.Allows(w.consumesRecv()) {
		t.stalled = false
		return true
	}
	if !t.stalled {
		t.stalled = true
		t.counters.CreditStalls++
	}
	return false
}

// sendPacket implements transport.
func (t rc) sendPacket(now reliability.Time, out Out, w *sendWQE) outcome {
	switch {
	case w.op == verbs.WRRDMARead:
		return t.sendRead(now, out, w)
	case w.isAtomic():
		return t.sendAtomic(now, out, w)
	case w.op == verbs.WRFlush:
		return t.sendFlush(now, out, w)
	case w.op == verbs.WRAtomicWrite:
		return t.sendAtomicWrite(now, out, w)
	}
	off := uint32(t.next.Sub(w.first)) * t.mtu
	n := min(t.mtu, w.length-off)
	inFlight := t.unackedBytes()
	if !t.window.Allows(inFlight, t.minBurst(w, off)) {
		if t.sinceAckReq == 0 {
			return blocked
		}
		t.forceAckReq = true // send one more packet to get an acknowledgement, so that the window moves
	}
	if !t.mayPace(now) {
		return blocked
	}
	fillsWindow := !t.window.Allows(inFlight+int(n)+PacketCost, int(t.mtu)+PacketCost)
	last := off+n == w.length
	ackReq := t.wantsAck(w, last, fillsWindow)
	info, o := t.buildData(now, out, w, off, n, ackReq, !t.next.Less(t.top))
	if o != sent {
		return o
	}
	t.onDataSent(now, int(n))
	t.recordAckReq(last, ackReq)
	if t.splitsWrite(w) && !t.next.Less(t.top) {
		t.credits.StartMessage(last && w.op == verbs.WRRDMAWriteWithImm)
	}
	t.onPacketSent(now, w, info.Opcode, 1, ackReq)
	return sent
}

// minBurst returns the window space required to send the packet at offset off
// of w. The first packet of a burst waits until the rest of its message, or a
// quarter of the window, may follow, because few large sends cost less than
// many small ones.
func (c *Core) minBurst(w *sendWQE, off uint32) int {
	one := int(min(c.mtu, w.length-off)) + PacketCost
	if c.burst > 0 {
		return one
	}
	return max(one, int(min(w.length-off, uint32(c.window.Size()/4))))
}

// sendRead builds the request for the next part of a read.
func (t rc) sendRead(now reliability.Time, out Out, w *sendWQE) outcome {
	off := uint32(t.next.Sub(w.first)) * t.mtu
	n := min(t.readPart-off%t.readPart, w.length-off)
	if t.rdOut >= uint32(t.attr.MaxRdAtomic) || !t.readWindow.Allows(int(t.rdBytes), int(n)) {
		return blocked
	}
	info := wire.RCReadRequest.Info()
	b := out.Next(&t.path, info.HeaderLen+wire.ICRCLen)
	if b == nil {
		return full
	}
	bth := wire.BTH{Opcode: info.Opcode, PKey: t.pkey, DestQPN: t.attr.DestQPN, PSN: t.next, AckReq: true}
	bth.Put(b)
	wire.RETH{VA: w.remote + uint64(off), RKey: w.rkey, Length: n}.Put(b[wire.BTHLen:])
	t.rdOut++
	t.rdBytes += n
	if !t.next.Less(t.top) {
		t.credits.StartMessage(false)
	}
	t.onPacketSent(now, w, info.Opcode, max(1, int((n+t.mtu-1)/t.mtu)), true)
	return sent
}

// sendAtomic builds an atomic request.
func (t rc) sendAtomic(now reliability.Time, out Out, w *sendWQE) outcome {
	if t.rdOut >= uint32(t.attr.MaxRdAtomic) {
		return blocked
	}
	op := wire.RCFetchAdd
	h := wire.AtomicETH{VA: w.remote, RKey: w.rkey, SwapAdd: w.operand}
	if w.op == verbs.WRAtomicCmpSwap {
		op = wire.RCCmpSwap
		h.SwapAdd, h.Compare = w.swap, w.operand
	}
	info := op.Info()
	b := out.Next(&t.path, info.HeaderLen+wire.ICRCLen)
	if b == nil {
		return full
	}
	bth := wire.BTH{Opcode: op, PKey: t.pkey, DestQPN: t.attr.DestQPN, PSN: t.next, AckReq: true}
	bth.Put(b)
	h.Put(b[wire.BTHLen:])
	t.rdOut++
	if !t.next.Less(t.top) {
		t.credits.StartMessage(false)
	}
	t.onPacketSent(now, w, op, 1, true)
	return sent
}

// onPacketSent advances past a packet of psns PSNs that was built, and starts the timer of its
// acknowledgement.
func (t rc) onPacketSent(now reliability.Time, w *sendWQE, op wire.Opcode, psns int, ackReq bool) {
	t.advancePast(now, w, op, psns, ackReq)
	t.retry.OnSent(now, ackReq, &t.rtt)
}

// onSendRefused implements transport.
func (t rc) onSendRefused(now reliability.Time, bth wire.BTH, info *wire.Info, refusal *verbs.RefusedError) {
	switch {
	case info.Class != t.class:
	case info.Request:
		t.onRequestRefused(now, bth.PSN, refusal)
	case info.Operation == wire.OpReadResponse && refusal.TooLarge():
		t.onResponseRefused(now, bth.PSN, refusal)
	}
}

// handlePacket implements transport.
func (t rc) handlePacket(now reliability.Time, p *wire.Packet) wire.Drop {
	if d := t.checkConnected(p); d != wire.DropNone {
		return d
	}
	switch {
	case t.handleConnected(now, p):
		return wire.DropNone
	case p.Info.Request:
		return t.handleRequest(now, p)
	case t.state == sRTR:
		return wire.DropQPState
	}
	return t.handleResponse(now, p)
}

// drain implements transport: responses and NAKs, congestion notifications, then requests.
func (t rc) drain(now reliability.Time, out Out) bool {
	t.resumeAt = 0
	for r := t.res.NextPending(); r != nil; r = t.res.NextPending() {
		if !t.sendResponse(now, out, r) {
			if t.resumeAt == 0 {
				return true
			}
			break // paced
		}
	}
	if t.resumeAt == 0 && t.acks.NAKPending() && !t.sendAck(now, out) {
		return true
	}
	return t.cnpDue && !t.sendCNP(now, out) || t.sendRequests(now, out)
}

// drainAck implements transport.
func (t rc) drainAck(now reliability.Time, out Out) bool {
	return t.acks.Pending() && t.res.NextPending() == nil && !t.sendAck(now, out)
}

// hasPendingAck implements transport.
func (t rc) hasPendingAck() bool { return t.acks.Pending() }

// expireDelayedAck implements transport.
func (t rc) expireDelayedAck() {
	if at := t.acks.Deadline(); at != 0 {
		t.acks.Advance(at)
	}
}

// deadline implements transport.
func (t rc) deadline() reliability.Time {
	if t.state != sRTS && t.state != sSQD {
		return t.resumeAt // no other timer runs in this state
	}
	return reliability.Earlier(reliability.Earlier(t.retry.Deadline(), t.acks.Deadline()), t.resumeAt)
}

// advance implements transport.
func (t rc) advance(now reliability.Time) {
	if t.deadline() == 0 {
		return
	}
	t.acks.Advance(now)
	if d := t.retry.Deadline(); d == 0 || now < d {
		return
	}
	rnr, refused := t.retry.InRNRWait(), t.retry.WasRefused()
	switch t.retry.OnTimer(now, &t.rtt) {
	case reliability.Probe:
		t.counters.Probes++
		t.forceAckReq, t.probing, t.resume = true, true, t.next
		t.goBack()
		t.probeUnanswered, t.probePSN = !t.sq.wqeAt(t.sq.head).expectsResponse(), t.una
	case reliability.GoBack:
		t.forceAckReq = true
		if !rnr {
			t.cautious = cautiousMessages
			if !refused {
				t.counters.Timeouts++
			}
			t.counters.CompleterRetryErr++
			t.onNoResponse(now)
		}
		t.goBack()
	case reliability.GiveUp:
		t.exhaustRetries(now)
	}
}

// configure implements transport: it applies the timing attributes to the requester.
func (t rc) configure() {
	peer := int(t.attr.AV.PeerBuffer)
	t.softrnicPeer = peer > 0
	t.retry.Configure(ackTimeout(t.attr.Timeout), t.attr.RetryCnt, t.attr.RNRRetry, t.softrnicPeer)
	timeout := int64(verbs.AckTimeout(t.attr.Timeout))
	t.peerDelaysAcks = t.softrnicPeer && (timeout == 0 || timeout >= reliability.DelayedAckProbe)
	start := t.top == t.una && t.window.Size() == 0
	if start {
		t.window.Reset(int(t.mtu), peer)
		t.readWindow.ResetReads(int(t.mtu), int(t.readLimit), t.softrnicPeer)
		t.credits.Reset(t.noCredits)
	}
	// Reads are split so that the responses never overrun the local receive
	// buffer. A part is large enough to amortize its request, and small enough
	// that several can be outstanding.
	part := t.readLimit / uint32(max(1, min(t.attr.MaxRdAtomic, 8)))
	part = max(part, min(64<<10, t.readLimit/2))
	t.readPart = max(part/t.mtu, 1) * t.mtu
	if start {
		t.startRateControl()
	}
}
