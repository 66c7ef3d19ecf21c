package qp

import (
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

// sendRequests builds request packets until one is blocked or the batch is
// full, and reports whether the batch is full.
func (c *Core) sendRequests(now reliability.Time, out Out) bool {
	for c.burst = 0; ; c.burst++ {
		if c.state != sRTS && c.state != sSQD || c.retry.InRNRWait() {
			return false
		}
		if c.sel != nil && c.sel.hasLost() {
			if o := c.resendLost(now, out); o != sent {
				return o == full
			}
		}
		if c.cur == c.sq.tail {
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
	if c.sel != nil {
		c.sel.ahead += c.keptBytes(w)
	}
	if !w.expectsResponse() && !c.splitsWrite(w) { // split writes count per packet
		c.credits.StartMessage(w.consumesRecv())
	}
	return true
}

// advancePast advances past a packet of psns PSNs that was built.
func (c *Core) advancePast(now reliability.Time, w *sendWQE, op wire.Opcode, psns int, ackReq bool) {
	psn := c.next
	c.recorder.addPacket(now, true, op, psn, uint8(0))
	c.counters.SentPkts++
	switch {
	case psn.Less(c.top):
		c.counters.Retransmitted++
		c.stopTiming(c.probing)
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
	c.stopTiming(c.probing)
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
	case w.op != verbs.WRRDMARead || w.length == 0:
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
	w.first, w.last = c.top, c.top.Add(-1)
	c.cur++
	c.completeReady(now)
	return true
}
