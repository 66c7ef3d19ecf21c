package qp

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// handleRequest handles a request packet of an RC peer. It checks the PSN, the
// position in the message, the permission and the resources, in this order, and
// then executes the request. (IBTA volume 1, 9.7.4.)
func (c *Core) handleRequest(now reliability.Time, p *wire.Packet) wire.Drop {
	if c.sel != nil {
		switch d := p.BTH.PSN.Sub(c.recv.Expected()); {
		case d > 0:
			return c.keepRequest(p)
		case d == 0:
			return c.handleInOrder(now, p)
		}
		if isCopy(p) && c.sel.hasServed(p.BTH.PSN) {
			return wire.DropDuplicate
		}
		c.sel.due = true
		if p.Info.Operation != wire.OpReadRequest { // part of a response may be missing
			c.sel.repeated++
		}
	}
	switch c.recv.Classify(p.BTH.PSN) {
	case reliability.Duplicate:
		c.counters.DuplicateRequest++
		return c.handleDuplicate(now, p)
	case reliability.Gap:
		c.counters.OutOfSeqRequest++
		c.acks.ScheduleNAK(wire.NakPSNSequence, c.recv.Expected())
		return wire.DropOutOfSequence
	case reliability.RepeatedGap:
		return wire.DropOutOfSequence
	}
	return c.executeRequest(now, p)
}

// executeRequest executes the expected request.
func (c *Core) executeRequest(now reliability.Time, p *wire.Packet) wire.Drop {
	if s, reason := c.checkOrder(p); s != 0 {
		return c.rejectRequest(now, p, s, reason)
	}
	if p.Info.Operation != wire.OpWrite {
		c.msg.priorBytes = 0
	}
	switch p.Info.Operation {
	case wire.OpSend:
		return c.receiveSend(now, p)
	case wire.OpWrite:
		return c.receiveWrite(now, p)
	case wire.OpReadRequest:
		return c.receiveRead(now, p)
	case wire.OpFlush:
		return c.receiveFlush(now, p)
	case wire.OpAtomicWrite:
		return c.receiveAtomicWrite(now, p)
	}
	return c.receiveAtomic(now, p)
}

// checkOrder checks a packet's position in its message and its length. It
// returns the NAK syndrome and the reason, or 0.
func (c *Core) checkOrder(p *wire.Packet) (wire.Syndrome, string) {
	m, i := &c.msg, p.Info
	switch {
	case i.First && m.active:
		return wire.NakInvalidRequest, "a new message began within an incomplete one"
	case !i.First && !m.active:
		return wire.NakInvalidRequest, "the packet continues a message that has not begun"
	case !i.First && m.op != i.Operation:
		return wire.NakInvalidRequest, "a SEND and a WRITE are mixed in one message"
	case !p.LengthFits(int(c.mtu)):
		return wire.NakInvalidRequest, "the length of the packet is invalid at its position in the message; the path MTUs may differ"
	}
	return 0, ""
}

// rejectionCause returns the advice for a request rejected with s.
func rejectionCause(s wire.Syndrome) string {
	if s == wire.NakRemoteAccess {
		return "correct the peer's key or range, or the region's access here"
	}
	return "correct the peer, or the attributes of the queue pair here"
}

// rejectRequest schedules a fatal NAK and enters ERR.
func (c *Core) rejectRequest(now reliability.Time, p *wire.Packet, s wire.Syndrome, reason string) wire.Drop {
	c.acks.ScheduleNAK(s, p.BTH.PSN)
	status, cause := verbs.WCRemInvReqErr, rejectionCause(s)
	switch s {
	case wire.NakRemoteAccess:
		status = verbs.WCRemAccessErr
	case wire.NakRemoteOperational:
		status, cause = verbs.WCLocProtErr, memoryCause
	}
	f := &verbs.Failure{Event: "rejected the peer's request: " + reason, Opcode: p.Info.Name, PSN: uint32(p.BTH.PSN), Cause: cause}
	if p.Info.RETH {
		h := p.RETH()
		f.Key, f.Addr, f.Length = h.RKey, h.VA, h.Length
	} else if p.Info.AtomicETH {
		h := p.AtomicETH()
		f.Key, f.Addr, f.Length = h.RKey, h.VA, 8
	}
	c.failReceive(now, status, f)
	return wire.DropNone
}

// rejectNotReady schedules an RNR NAK because no receive is posted.
func (c *Core) rejectNotReady(p *wire.Packet) wire.Drop {
	c.recv.OnRNRNAK()
	c.acks.ScheduleNAK(wire.RNRSyndrome(c.attr.MinRNRTimer), p.BTH.PSN)
	return wire.DropNoReceive
}

// acceptPacket advances past a request packet and schedules an acknowledgement
// if one was requested.
func (c *Core) acceptPacket(now reliability.Time, p *wire.Packet) {
	c.recv.Advance(1)
	switch {
	case p.BTH.AckReq:
		if c.acks.Pending() {
			c.counters.AckDeferred++
		}
		c.acks.ScheduleAck(p.BTH.PSN, p.Info.Last && !p.BTH.More)
	case c.softrnicPeer:
		c.acks.ScheduleDelayed(p.BTH.PSN, now+AckDelay)
	}
}

// receiveSend handles a packet of a SEND.
func (c *Core) receiveSend(now reliability.Time, p *wire.Packet) wire.Drop {
	m := &c.msg
	if p.Info.First {
		if !c.acquireRecv() {
			return c.rejectNotReady(p)
		}
		m.active, m.op = true, wire.OpSend
	}
	n := len(p.Payload)
	if uint64(m.got)+uint64(n) > m.capacity {
		c.acks.ScheduleNAK(wire.NakInvalidRequest, p.BTH.PSN)
		c.failReceive(now, verbs.WCLocLenErr, &verbs.Failure{
			Event:  fmt.Sprintf("the message is longer than the %d bytes of the posted receive", m.capacity),
			Opcode: p.Info.Name, PSN: uint32(p.BTH.PSN), Cause: "post larger receives, or send less",
		})
		return wire.DropNone
	}
	if f := c.scatter(m.wqe.SGList, m.got, p.Payload); !f.ok() {
		c.acks.ScheduleNAK(wire.NakRemoteOperational, p.BTH.PSN)
		c.failReceive(now, verbs.WCLocProtErr, recvFailure(f))
		return wire.DropNone
	}
	var wc verbs.WC
	if p.Info.IETH {
		key := p.IETH().RKey
		if f := c.mem.Invalidate(key, c.num); f != NoFault {
			c.acks.ScheduleNAK(wire.NakRemoteAccess, p.BTH.PSN)
			c.failReceive(now, verbs.WCRemAccessErr, &verbs.Failure{
				Event: "SEND with invalidate: " + f.String(), Opcode: p.Info.Name, PSN: uint32(p.BTH.PSN), Key: key,
				Cause: "only a bound type 2 memory window of this queue pair can be invalidated by the peer",
			})
			return wire.DropNone
		}
		wc.Flags, wc.InvKey = verbs.WCWithInv, key
	}
	m.got += uint32(n)
	c.counters.RcvdBytes += uint64(n)
	if p.Info.Last {
		m.active = false
		c.recv.CompleteMessage()
		c.completeRecv(p, wc)
	}
	c.acceptPacket(now, p)
	return wire.DropNone
}

// receiveWrite handles a packet of an RDMA WRITE.
func (c *Core) receiveWrite(now reliability.Time, p *wire.Packet) wire.Drop {
	m := &c.msg
	if c.attr.AccessFlags&verbs.AccessRemoteWrite == 0 {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, "the queue pair does not permit remote writes")
	}
	n := uint32(len(p.Payload))
	va, rkey, left, length := m.va, m.rkey, m.left, m.length
	if p.Info.First {
		h := p.RETH()
		va, rkey, left, length = h.VA, h.RKey, h.Length, h.Length
	}
	if p.Info.Imm && !c.acquireRecv() {
		return c.rejectNotReady(p)
	}
	// The first packet is checked for the whole message. Later packets are
	// checked again, because the region may have been deregistered.
	need := n
	if p.Info.First {
		if need = length; need > MaxMessage-m.priorBytes {
			return c.rejectRequest(now, p, wire.NakInvalidRequest, "the message is longer than 2^31 bytes")
		}
	}
	fits := n < left && !p.Info.Last || n == left && p.Info.Last
	var dst []byte
	if need > 0 && (fits || p.Info.First) {
		var f Fault
		if dst, f = c.mem.Remote(rkey, va, need, verbs.AccessRemoteWrite, c.num); f != NoFault {
			return c.rejectRequest(now, p, wire.NakRemoteAccess, f.String())
		}
	}
	if !fits {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, "the total length of the packets differs from the length of the message")
	}
	if !c.writeAround(p.BTH.PSN, dst[:n], p.Payload) {
		return c.rejectRequest(now, p, wire.NakRemoteOperational, FaultMemory.String())
	}
	c.counters.RcvdBytes += uint64(n)
	m.active, m.op = !p.Info.Last, wire.OpWrite
	m.va, m.rkey, m.left, m.length = va+uint64(n), rkey, left-n, length
	if p.Info.Last {
		c.recv.CompleteMessage()
		if p.Info.Imm {
			c.completeRecv(p, verbs.WC{})
		}
		m.priorBytes += length
		if !p.BTH.More {
			m.priorBytes = 0
		}
	}
	c.acceptPacket(now, p)
	return wire.DropNone
}

const tooManyReads = "more concurrent reads and atomics than max_dest_rd_atomic"

// receiveRead handles an RDMA READ request. The next Drain sends the response,
// which also acknowledges the request.
func (c *Core) receiveRead(now reliability.Time, p *wire.Packet) wire.Drop {
	if c.attr.AccessFlags&verbs.AccessRemoteRead == 0 {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, "the queue pair does not permit remote reads")
	}
	h := p.RETH()
	if h.Length > MaxMessage {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, "the message is longer than 2^31 bytes")
	}
	if h.Length > 0 {
		if _, f := c.mem.Remote(h.RKey, h.VA, h.Length, verbs.AccessRemoteRead, c.num); f != NoFault {
			return c.rejectRequest(now, p, wire.NakRemoteAccess, f.String())
		}
	}
	r := c.res.Add()
	if r == nil {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, tooManyReads)
	}
	psns := c.responsePackets(h.Length)
	c.recv.CompleteMessage()
	r.First, r.Last = p.BTH.PSN, p.BTH.PSN.Add(psns-1)
	r.VA, r.RKey, r.Length, r.MSN = h.VA, h.RKey, h.Length, c.recv.MSN()
	if c.sel != nil {
		c.sel.onServed(r.First)
	}
	c.res.ScheduleResponse(r, r.First, r.Last, false)
	c.recv.Advance(psns)
	return wire.DropNone
}

// responsePackets returns the number of packets of n bytes of read data.
func (c *Core) responsePackets(n uint32) int {
	return int(max(1, (uint64(n)+uint64(c.mtu)-1)/uint64(c.mtu)))
}

// receiveAtomic executes a compare-and-swap or fetch-and-add, and saves the
// result to answer a repeated request.
func (c *Core) receiveAtomic(now reliability.Time, p *wire.Packet) wire.Drop {
	if c.attr.AccessFlags&verbs.AccessRemoteAtomic == 0 {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, "the queue pair does not permit remote atomics")
	}
	h := p.AtomicETH()
	if h.VA%8 != 0 {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, "an atomic's address must be a multiple of 8")
	}
	mem, f := c.mem.Remote(h.RKey, h.VA, 8, verbs.AccessRemoteAtomic, c.num)
	if f != NoFault && f != FaultMisalign {
		return c.rejectRequest(now, p, wire.NakRemoteAccess, f.String())
	}
	word, ok := atomicWord(mem)
	if !ok {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, FaultMisalign.String())
	}
	r := c.res.Add()
	if r == nil {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, tooManyReads)
	}
	if r.Orig, ok = executeAtomic(word, p); !ok {
		return c.rejectRequest(now, p, wire.NakRemoteOperational, FaultMemory.String())
	}
	c.recv.CompleteMessage()
	r.First, r.Last, r.Atomic, r.MSN = p.BTH.PSN, p.BTH.PSN, true, c.recv.MSN()
	c.res.ScheduleResponse(r, r.First, r.Last, false)
	c.recv.Advance(1)
	return wire.DropNone
}

// executeAtomic executes the atomic of p on word and returns the original
// value. It reports false on a page fault.
func executeAtomic(word *uint64, p *wire.Packet) (orig uint64, ok bool) {
	h := p.AtomicETH()
	ok = place.Try(func() {
		if p.Info.Operation == wire.OpCmpSwap {
			orig = place.CompareSwap(word, h.Compare, h.SwapAdd)
		} else {
			orig = place.FetchAdd(word, h.SwapAdd)
		}
	})
	return orig, ok
}

// handleDuplicate handles a repeated request: a SEND or WRITE is acknowledged
// again, a read is executed again, an atomic is answered with the saved value, a
// FLUSH or ATOMIC WRITE is answered without being executed again.
func (c *Core) handleDuplicate(now reliability.Time, p *wire.Packet) wire.Drop {
	psn := p.BTH.PSN
	switch p.Info.Operation {
	case wire.OpSend, wire.OpWrite:
		c.acks.ScheduleAck(c.recv.Expected().Add(-1), true)
		return wire.DropDuplicate
	}
	r := c.res.FindByPSN(psn)
	if r == nil || r.Atomic != p.Info.AtomicETH || r.Empty != isEmptyRead(p) {
		return wire.DropUnknownReplay
	}
	to := r.Last
	if !r.Atomic && !r.Empty {
		h := p.RETH()
		off := uint32(psn.Sub(r.First)) * c.mtu
		switch end := uint64(off) + uint64(h.Length); {
		case h.RKey != r.RKey || h.VA != r.VA+uint64(off) || end > uint64(r.Length):
			return wire.DropUnknownReplay
		case end < uint64(r.Length) && (h.Length == 0 || h.Length%c.mtu != 0):
			return wire.DropUnknownReplay // ends inside a packet of the first response
		}
		to = psn.Add(c.responsePackets(h.Length) - 1)
	}
	if r.Pending() && r.Next.LessEq(psn) && to.LessEq(r.To) {
		return wire.DropDuplicate // the response is pending
	}
	if c.sel != nil && !r.Atomic && !r.Empty {
		if !c.res.ScheduleReplay(r, psn, to) {
			return wire.DropUnknownReplay
		}
		c.sel.onServed(psn)
		return wire.DropNone
	}
	c.res.ScheduleResponse(r, psn, to, r.IsReplay() || !r.Pending())
	return wire.DropNone
}
