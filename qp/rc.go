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
	case hasEmptyResponse(w.op):
		return t.sendEmptyRead(now, out, w)
	}
	off := uint32(t.next.Sub(w.first)) * t.mtu
	n := min(t.mtu, w.length-off)
	if !t.spanAllows(1) {
		return blocked
	}
	inFlight := t.bytesInFlight()
	if !t.windowAllows(inFlight, t.minBurst(w, off)) {
		if t.sel != nil {
			t.sel.bandwidth.OnLimited()
		}
		if t.sinceAckReq == 0 {
			return blocked
		}
		t.forceAckReq = true // send one more packet to get an acknowledgement, so that the window moves
	}
	if !t.mayPace(now) {
		return blocked
	}
	fillsWindow := !t.windowAllows(inFlight+int(n)+PacketCost, int(t.mtu)+PacketCost)
	last := off+n == w.length
	ackReq := t.wantsAck(w, last, fillsWindow)
	info, o := t.buildData(now, out, w, off, n, ackReq, !t.next.Less(t.top))
	if o != sent {
		return o
	}
	t.onDataSent(now, int(n), false)
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
	psns := max(1, int((n+t.mtu-1)/t.mtu))
	if int(t.rdOut) >= t.readDepth(t.attr.MaxRdAtomic) || !t.spanAllows(psns) {
		return blocked
	}
	if !t.readWindowAllows(int(n)) {
		if t.sel != nil && t.sel.reads != nil {
			t.sel.reads.bandwidth.OnLimited()
		}
		return blocked
	}
	if !t.putRead(out, w, t.next, off, n, false) {
		return full
	}
	t.putReadCopy(now, out, w, t.next, psns)
	t.rdOut++
	t.rdBytes += n
	if !t.next.Less(t.top) {
		t.credits.StartMessage(false)
	}
	t.onPacketSent(now, w, wire.RCReadRequest, psns, true)
	return sent
}

// putRead builds the request for n bytes at offset off of the READ w, or a copy of it, see
// putReadCopy. It reports false if the batch is full.
func (c *Core) putRead(out Out, w *sendWQE, psn wire.PSN, off, n uint32, isCopy bool) bool {
	info := wire.RCReadRequest.Info()
	b := out.Next(&c.path, info.HeaderLen+wire.ICRCLen)
	if b == nil {
		return false
	}
	bth := wire.BTH{Opcode: info.Opcode, PKey: c.pkey, DestQPN: c.attr.DestQPN, PSN: psn, AckReq: true, SE: isCopy}
	bth.Put(b)
	wire.RETH{VA: w.remote + uint64(off), RKey: w.rkey, Length: n}.Put(b[wire.BTHLen:])
	return true
}

// sendAtomic builds an atomic request.
func (t rc) sendAtomic(now reliability.Time, out Out, w *sendWQE) outcome {
	if int(t.rdOut) >= t.readDepth(t.attr.MaxRdAtomic) || !t.spanAllows(1) {
		return blocked
	}
	op, ok := t.putAtomic(out, w, t.next)
	if !ok {
		return full
	}
	t.rdOut++
	if !t.next.Less(t.top) {
		t.credits.StartMessage(false)
	}
	t.onPacketSent(now, w, op, 1, true)
	return sent
}

// putAtomic builds the request of the atomic w. It reports false if the batch is full.
func (c *Core) putAtomic(out Out, w *sendWQE, psn wire.PSN) (op wire.Opcode, ok bool) {
	op = wire.RCFetchAdd
	h := wire.AtomicETH{VA: w.remote, RKey: w.rkey, SwapAdd: w.operand}
	if w.op == verbs.WRAtomicCmpSwap {
		op = wire.RCCmpSwap
		h.SwapAdd, h.Compare = w.swap, w.operand
	}
	b := out.Next(&c.path, op.Info().HeaderLen+wire.ICRCLen)
	if b == nil {
		return op, false
	}
	bth := wire.BTH{Opcode: op, PKey: c.pkey, DestQPN: c.attr.DestQPN, PSN: psn, AckReq: true}
	bth.Put(b)
	h.Put(b[wire.BTHLen:])
	return op, true
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

// drain implements transport: responses and NAKs, congestion notifications, then requests, which come
// first if it is their turn of the pacer.
func (t rc) drain(now reliability.Time, out Out) bool {
	t.resumeAt = 0
	if t.requestsFirst && t.sendRequests(now, out) {
		t.logSent(now)
		return true
	}
	for r := t.res.NextPending(); r != nil; r = t.res.NextPending() {
		if !t.sendResponse(now, out, r) {
			if t.resumeAt == 0 {
				return true
			}
			break // paced
		}
	}
	if t.res.NextPending() == nil && (t.acks.NAKPending() || t.sel != nil && t.sel.urgent) && !t.sendAck(now, out) {
		return true
	}
	if t.cnpDue && !t.sendCNP(now, out) {
		return true
	}
	full := t.sendRequests(now, out)
	t.logSent(now)
	return full
}

// drainAck implements transport.
func (t rc) drainAck(now reliability.Time, out Out) bool {
	t.scheduleSelectiveAck()
	return t.acks.Pending() && t.res.NextPending() == nil && !t.sendAck(now, out)
}

// hasPendingAck implements transport.
func (t rc) hasPendingAck() bool {
	return t.acks.Pending() || t.sel != nil && t.sel.due
}

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
	d := reliability.Earlier(reliability.Earlier(t.retry.Deadline(), t.acks.Deadline()), t.resumeAt)
	if t.sel != nil {
		d = reliability.Earlier(d, reliability.Earlier(t.sel.requests.Deadline(), t.sel.responses.Deadline()))
	}
	return d
}

// advance implements transport.
func (t rc) advance(now reliability.Time) {
	if t.deadline() == 0 {
		return
	}
	t.acks.Advance(now)
	if t.sel != nil {
		t.detectLosses(now)
	}
	if d := t.retry.Deadline(); d == 0 || now < d {
		return
	}
	rnr, refused := t.retry.InRNRWait(), t.retry.WasRefused()
	switch t.retry.OnTimer(now, &t.rtt) {
	case reliability.Probe:
		t.counters.Probes++
		if t.sel != nil {
			t.sel.probe = true
			return
		}
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
		switch {
		case t.sel == nil:
			t.goBack()
		case !rnr:
			t.loseAll(now)
		}
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
		if t.sel != nil {
			t.sel.resetRequester(t.una)
		}
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
