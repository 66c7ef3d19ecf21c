package qp

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// PacketCost is the size in bytes that each packet counts in the window beside
// its payload: headers and the system's bookkeeping.
const PacketCost = 256

// windowPosition returns the window coordinate of a PSN of a started request.
// The difference of two coordinates is the number of bytes between them.
func (c *Core) windowPosition(w *sendWQE, psn wire.PSN) uint64 {
	k := uint64(psn-w.first) & wire.PSNMask // a message may span half of the PSN space
	pos := w.base + k*PacketCost
	if !w.expectsResponse() {
		pos += min(k*uint64(c.mtu), uint64(w.length))
	}
	return pos
}

// unackedBytes returns the number of bytes sent and not acknowledged.
func (c *Core) unackedBytes() int {
	if c.next == c.una {
		return 0
	}
	sentPos, ackedPos := c.endPos, c.endPos
	if c.cur != c.sq.tail {
		if w := c.sq.wqeAt(c.cur); w.started && !w.isLocal() {
			sentPos = c.windowPosition(w, c.next)
		}
	}
	if w := c.sq.wqeAt(c.sq.head); w.started && !w.isLocal() && w.first.LessEq(c.una) {
		ackedPos = c.windowPosition(w, c.una)
	} else if w.started {
		ackedPos = w.base
	}
	return int(sentPos - ackedPos)
}

// An outcome is the result of an attempt to send the next packet.
type outcome uint8

const (
	sent    outcome = iota
	blocked         // waits for an acknowledgement, a credit or a timer
	full            // the batch is full
)

// sendRequests builds request packets until one is blocked or the batch is
// full, and reports whether the batch is full.
func (c *Core) sendRequests(now reliability.Time, out Out) bool {
	for c.burst = 0; ; c.burst++ {
		if c.state != sRTS && c.state != sSQD || c.cur == c.sq.tail || c.retry.InRNRWait() {
			return false
		}
		w := c.sq.wqeAt(c.cur)
		if w.isLocal() {
			if !c.executeLocal(now, w) {
				return false
			}
			continue
		}
		if !w.started && !c.startRequest(w) {
			return false
		}
		switch c.transport.sendPacket(now, out, w) {
		case blocked:
			return false
		case full:
			return true
		}
		if c.probing {
			// A probe is one packet. Later packets were sent before and may
			// have arrived.
			c.probing = false
			if c.next.Less(c.resume) {
				c.rewindTo(c.resume)
			}
			return false
		}
	}
}

// startRequest assigns PSNs to w and reports whether it may be sent now.
func (c *Core) startRequest(w *sendWQE) bool {
	if c.state == sSQD {
		return false
	}
	if w.flags&verbs.SendFence != 0 && c.rdOut > 0 {
		return false
	}
	if !c.transport.mayStart(w) {
		return false
	}
	w.first = c.top
	w.last = c.top.Add(w.packetCount(c.mtu) - 1)
	w.base = c.endPos
	w.started = true
	c.endPos = c.windowPosition(w, w.last.Add(1))
	if !w.expectsResponse() && !c.splitsWrite(w) { // split writes count per packet
		c.credits.StartMessage(w.consumesRecv())
	}
	return true
}

// minZeroCopy is the minimum payload in bytes that is sent from the
// application's memory without a copy.
const minZeroCopy = 2048

// buildData builds the packet of a SEND or WRITE with n bytes from off. If zeroCopy is set, out
// may refer to the application's memory.
func (c *Core) buildData(now reliability.Time, out Out, w *sendWQE, off, n uint32, ackReq, zeroCopy bool) (*wire.Info, outcome) {
	last := off+n == w.length
	write := w.op == verbs.WRRDMAWrite || w.op == verbs.WRRDMAWriteWithImm
	op := wire.OpSend
	if write {
		op = wire.OpWrite
	}
	imm := last && (w.op == verbs.WRSendWithImm || w.op == verbs.WRRDMAWriteWithImm)
	split := c.splitsWrite(w)
	info := wire.Compose(c.class, op, off == 0 || split, last || split, imm, last && w.op == verbs.WRSendWithInv).Info()
	pad := wire.PadFor(int(n))
	total := info.HeaderLen + int(n) + pad + wire.ICRCLen

	var src []byte
	if w.inline == 0 {
		var m memFault
		if src, m = c.resolveSource(c.sq.sglAt(c.cur), off, n); !m.ok() {
			return nil, c.failSource(now, w, m)
		}
	}
	var b []byte
	zeroCopy = zeroCopy && len(src) >= minZeroCopy && pad == 0
	if zeroCopy {
		if off%probeAhead == 0 {
			if m := c.probeSource(&c.sq.sglAt(c.cur)[0], off, w.length); !m.ok() {
				return nil, c.failSource(now, w, m)
			}
		}
		b = out.NextZeroCopy(&c.path, info.HeaderLen, src)
	} else {
		b = out.Next(&c.path, total)
	}
	if b == nil {
		return nil, full
	}
	if !zeroCopy {
		if m := c.fillPayload(b[info.HeaderLen:info.HeaderLen+int(n)+pad], w, src, off, n); !m.ok() {
			out.Cancel()
			return nil, c.failSource(now, w, m)
		}
	}
	bth := wire.BTH{
		Opcode: info.Opcode, Pad: uint8(pad), PKey: c.pkey, DestQPN: c.attr.DestQPN, PSN: c.next,
		SE:     last && w.flags&verbs.SendSolicited != 0 && w.consumesRecv(),
		AckReq: ackReq,
		More:   split && !last,
	}
	bth.Put(b)
	if info.RETH {
		h := wire.RETH{VA: w.remote, RKey: w.rkey, Length: w.length}
		if split {
			h.VA, h.Length = w.remote+uint64(off), n
		}
		h.Put(b[wire.BTHLen:])
	}
	if info.Imm {
		binary.BigEndian.PutUint32(b[info.HeaderLen-wire.ImmLen:], w.immInv)
	}
	if info.IETH {
		wire.IETH{RKey: w.immInv}.Put(b[info.HeaderLen-wire.IETHLen:])
	}
	c.counters.SentBytes += uint64(n)
	return info, sent
}

// failSource fails w, the request at cur, because its source cannot be read. It
// first waits until earlier requests are complete.
func (c *Core) failSource(now reliability.Time, w *sendWQE, m memFault) outcome {
	if c.cur == c.sq.head {
		c.failLocal(now, w, m)
	}
	return blocked
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

// onPacketSent advances past a packet of psns PSNs that was built, and starts the timer of its
// acknowledgement.
func (t rc) onPacketSent(now reliability.Time, w *sendWQE, op wire.Opcode, psns int, ackReq bool) {
	t.advancePast(now, w, op, psns, ackReq)
	t.retry.OnSent(now, ackReq, &t.rtt)
}

// advancePast advances past a packet of psns PSNs that was built.
func (c *Core) advancePast(now reliability.Time, w *sendWQE, op wire.Opcode, psns int, ackReq bool) {
	psn := c.next
	c.recorder.addPacket(now, true, op, psn, uint8(0))
	c.counters.SentPkts++
	switch {
	case psn.Less(c.top):
		c.counters.Retransmitted++
		c.rtt.StopTiming()
	case ackReq:
		c.rtt.OnSent(now, psn)
		c.lastAckReq, c.ackReqInFlight = psn, true
	}
	c.next = psn.Add(psns)
	if c.top.Less(c.next) {
		c.top = c.next
	}
	if w.last.Less(c.next) {
		c.cur++
	}
}

// goBack makes the oldest unacknowledged packet the next to send (go-back-N).
func (c *Core) goBack() {
	c.rtt.StopTiming()
	c.sinceAckReq = 0
	c.rewindTo(c.una)
}

// rewindTo makes psn, which lies between una and top, the next packet to send.
func (c *Core) rewindTo(psn wire.PSN) {
	c.next = psn
	c.cur = c.sq.head
	c.skipSent()
	c.recountReads()
}

// skipSent moves cur past requests before next.
func (c *Core) skipSent() {
	for c.cur != c.sq.tail {
		w := c.sq.wqeAt(c.cur)
		if !w.started || !w.isLocal() && c.next.LessEq(w.last) {
			return
		}
		c.cur++
	}
}

// recountReads recomputes the outstanding reads and atomics after the send
// position moved. Requests after it must be sent again.
func (c *Core) recountReads() {
	c.rdOut, c.rdBytes = 0, 0
	for i := c.sq.head; i != c.sq.tail && c.sq.wqeAt(i).started; i++ {
		c.countReads(i, 1)
	}
}

// countReads adds the outstanding part of request i to rdOut and rdBytes, or
// subtracts it if sign is -1.
func (c *Core) countReads(i uint32, sign int) {
	w := c.sq.wqeAt(i)
	if !w.expectsResponse() || w.done || !w.started {
		return
	}
	requested := c.requestedBytes(i, w)
	switch {
	case w.isAtomic() || w.length == 0:
		c.rdOut += uint32(sign) * min(requested, 1)
	case requested > w.got:
		c.rdOut += uint32(sign) * ((requested-1)/c.readPart - w.got/c.readPart + 1)
		c.rdBytes += uint32(sign) * (requested - w.got)
	}
}

// requestedBytes returns the number of requested response bytes of w, request
// i. For an empty response it returns 1.
func (c *Core) requestedBytes(i uint32, w *sendWQE) uint32 {
	switch {
	case int32(i-c.cur) > 0:
		return 0
	case i == c.cur:
		return min(uint32(c.next-w.first)&wire.PSNMask*c.mtu, w.length)
	}
	return max(w.length, 1)
}

// executeLocal executes the local operation at c.cur and reports whether it was
// ready. LOCAL_INV waits until all earlier requests are complete.
func (c *Core) executeLocal(now reliability.Time, w *sendWQE) bool {
	if w.started {
		c.cur++
		return true
	}
	if c.state == sSQD || w.op == verbs.WRLocalInv && c.cur != c.sq.head || w.flags&verbs.SendFence != 0 && c.rdOut > 0 {
		return false
	}
	var f Fault
	if w.op == verbs.WRLocalInv {
		f = c.mem.Invalidate(w.immInv, c.num)
	} else {
		f = c.mem.Bind(w.bind, c.num)
	}
	if f != NoFault {
		if c.cur == c.sq.head { // earlier requests complete first
			c.failBind(now, w, f)
		}
		return false
	}
	w.started, w.base = true, c.endPos
	c.cur++
	c.completeReady(now)
	return true
}

// splitsWrite reports whether w is sent as one RDMA WRITE ONLY packet per MTU.
// This applies to multi-packet writes to a softrnic peer.
//
// In a segmented message the FIRST packet carries a RETH and MIDDLE and LAST do
// not, so their sizes differ. Generic segmentation offload (UDP GSO) requires
// packets of one size per buffer, so each segmented message would need at least
// two buffers, and a buffer costs more than its packets. WRITE ONLY packets
// have one size, also across messages.
//
// Any responder accepts them, because they are consecutive short writes. Two
// effects differ: each packet counts in the MSN, and each is checked by itself,
// so a write that exceeds its region may have been partly executed when it
// fails. All packets but the last have BTH.More set: with immediate data, the
// receive completion reports the total length, and no acknowledgement is urgent
// in the middle of a message. Writes of UC are not split, because they must
// arrive completely or not at all.
//
// The last packet of a write with immediate data is 4 bytes longer than others
// of the same payload. An application that streams such writes should make them
// 4 bytes shorter than a multiple of the MTU.
//
// For the same reason, read responses to softrnic peers are all ONLY packets,
// see sendResponse.
func (c *Core) splitsWrite(w *sendWQE) bool {
	return c.softrnicPeer && (w.op == verbs.WRRDMAWrite || w.op == verbs.WRRDMAWriteWithImm) && w.length > c.mtu
}
