package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// An rdmaReply is a queued response to a peer.
type rdmaReply struct {
	peer     *Peer
	op       wire.Opcode
	psn      wire.PSN
	syndrome wire.Syndrome // NAK
	value    uint64        // atomic: original value; read: address of the next packet
	rkey     uint32
	n        uint32 // read: remaining bytes
	repeated bool   // read: the request is a repetition
}

// maxReplies is the maximum number of queued replies per peer. A peer has no
// more requests in flight, so requests beyond it are dropped; the peer
// retransmits them if needed.
const maxReplies = reliability.ReplayWindow

// handleRDMA handles a packet of an RDMA peer.
func (c *Core) handleRDMA(now reliability.Time, pkt *wire.Packet) wire.Drop {
	h := pkt.DETH()
	p := c.rdma.lastPeer
	if p == nil || p.localToken != h.QKey {
		if p = c.rdma.peers[h.QKey]; p == nil {
			return wire.DropBadQKey
		}
		c.rdma.lastPeer = p
	}
	switch {
	case p.qpn != h.SrcQPN || p.path.Dst.Addr() != pkt.Src.Addr():
		return wire.DropWrongSource
	case !p.connected:
		return wire.DropQPState
	case len(pkt.Payload) > int(p.mtu) || pkt.Info.Operation == wire.OpWrite && uint32(len(pkt.Payload)) != pkt.RETH().Length:
		return wire.DropBadLength
	case pkt.Info.Request:
		return p.handleRequest(now, pkt)
	case c.state == sRTR:
		return wire.DropQPState
	}
	return p.handleResponse(now, pkt)
}

// handleRequest executes a fresh request and answers it, or repeats the
// response.
func (p *Peer) handleRequest(now reliability.Time, pkt *wire.Packet) wire.Drop {
	c, psn := p.core, pkt.BTH.PSN
	class := p.replay.Classify(psn)
	switch {
	case class == reliability.Outdated:
		return wire.DropDuplicate
	case class == reliability.Premature:
		return wire.DropOutOfSequence
	case p.pendingReplies >= maxReplies:
		return wire.DropNoReceive
	}
	repeated := class == reliability.Repeated
	if repeated {
		c.counters.DuplicateRequest++
	}
	switch op := pkt.Info.Operation; {
	case repeated && op == wire.OpWrite:
		p.scheduleAck()
		return wire.DropDuplicate
	case repeated && op != wire.OpReadRequest:
		if p.atomicResults == nil {
			return wire.DropUnknownReplay
		}
		p.queueReply(rdmaReply{op: wire.UDXAtomicAck, psn: psn, value: p.atomicResults[psn%reliability.ReplayWindow]})
		return wire.DropDuplicate
	case op == wire.OpReadRequest:
		return p.serveRead(pkt, repeated)
	case op == wire.OpWrite:
		return p.serveWrite(now, pkt)
	}
	return p.serveAtomic(pkt)
}

// queueNAK rejects a request. It counts as not executed.
func (p *Peer) queueNAK(psn wire.PSN, s wire.Syndrome) wire.Drop {
	p.queueReply(rdmaReply{op: wire.UDXAck, psn: psn, syndrome: s})
	return wire.DropAccessDenied
}

func (p *Peer) serveWrite(now reliability.Time, pkt *wire.Packet) wire.Drop {
	c, h := p.core, pkt.RETH()
	if p.access&verbs.AccessRemoteWrite == 0 {
		return p.queueNAK(pkt.BTH.PSN, wire.NakInvalidRequest)
	}
	if h.Length > 0 {
		dst, f := c.mem.Remote(h.RKey, h.VA, h.Length, verbs.AccessRemoteWrite, c.num)
		if f != NoFault {
			return p.queueNAK(pkt.BTH.PSN, wire.NakRemoteAccess)
		}
		if !writeMemory(dst, pkt.Payload) {
			return p.queueNAK(pkt.BTH.PSN, wire.NakRemoteOperational)
		}
	}
	c.counters.RcvdBytes += uint64(h.Length)
	p.replay.MarkExecuted(pkt.BTH.PSN)
	if pkt.BTH.AckReq {
		p.scheduleAck()
	} else {
		p.scheduleDelayedAck(now)
	}
	return wire.DropNone
}

// serveRead queues the response of a read. Reads are idempotent.
func (p *Peer) serveRead(pkt *wire.Packet, repeated bool) wire.Drop {
	c, h := p.core, pkt.RETH()
	if p.access&verbs.AccessRemoteRead == 0 {
		return p.queueNAK(pkt.BTH.PSN, wire.NakInvalidRequest)
	}
	if h.Length > maxReadPackets*p.mtu {
		return p.queueNAK(pkt.BTH.PSN, wire.NakInvalidRequest)
	}
	if h.Length > 0 {
		if _, f := c.mem.Remote(h.RKey, h.VA, h.Length, verbs.AccessRemoteRead, c.num); f != NoFault {
			return p.queueNAK(pkt.BTH.PSN, wire.NakRemoteAccess)
		}
	}
	if !repeated {
		p.replay.MarkExecuted(pkt.BTH.PSN)
	}
	p.queueReply(rdmaReply{op: wire.UDXReadResponse, psn: pkt.BTH.PSN, value: h.VA, rkey: h.RKey, n: h.Length, repeated: repeated})
	return wire.DropNone
}

// serveAtomic executes an atomic once and saves the original value for
// repetitions.
func (p *Peer) serveAtomic(pkt *wire.Packet) wire.Drop {
	c, h, psn := p.core, pkt.AtomicETH(), pkt.BTH.PSN
	if p.access&verbs.AccessRemoteAtomic == 0 || h.VA%8 != 0 {
		return p.queueNAK(psn, wire.NakInvalidRequest)
	}
	mem, f := c.mem.Remote(h.RKey, h.VA, 8, verbs.AccessRemoteAtomic, c.num)
	if f != NoFault && f != FaultMisalign {
		return p.queueNAK(psn, wire.NakRemoteAccess)
	}
	word, ok := atomicWord(mem)
	if !ok {
		return p.queueNAK(psn, wire.NakInvalidRequest)
	}
	if p.atomicResults == nil {
		p.atomicResults = new([reliability.ReplayWindow]uint64)
	}
	orig, ok := executeAtomic(word, pkt)
	if !ok {
		return p.queueNAK(psn, wire.NakRemoteOperational)
	}
	p.atomicResults[psn%reliability.ReplayWindow] = orig
	p.replay.MarkExecuted(psn)
	p.queueReply(rdmaReply{op: wire.UDXAtomicAck, psn: psn, value: orig})
	return wire.DropNone
}

// queueReply queues a response for the next Drain.
func (p *Peer) queueReply(r rdmaReply) {
	r.peer = p
	p.pendingReplies++
	p.core.rdma.replies.Push(r)
}

// scheduleAck schedules an acknowledgement for the next DrainAck.
func (p *Peer) scheduleAck() {
	p.delayedAckAt = 0
	if !p.ackPending {
		p.ackPending = true
		p.core.rdma.ackPeers = append(p.core.rdma.ackPeers, p)
	}
}

// A delayedAck is an acknowledgement that becomes pending at a time, unless it
// is sent earlier.
type delayedAck struct {
	peer *Peer
	at   reliability.Time
}

// scheduleDelayedAck schedules an unrequested acknowledgement after AckDelay,
// or together with a requested one.
func (p *Peer) scheduleDelayedAck(now reliability.Time) {
	if p.ackPending || p.delayedAckAt != 0 {
		return
	}
	r := p.core.rdma
	p.delayedAckAt = now + AckDelay
	r.delayedAcks.Push(delayedAck{p, p.delayedAckAt})
	r.deadline = reliability.Earlier(r.deadline, p.delayedAckAt)
}

// scheduleDueAcks makes delayed acknowledgements pending whose time has come.
func (r *rdma) scheduleDueAcks(now reliability.Time) {
	for r.delayedAcks.Len() > 0 {
		a := *r.delayedAcks.Front()
		current := a.peer.delayedAckAt == a.at && !a.peer.closed
		if current && a.at > now {
			return
		}
		r.delayedAcks.Pop()
		if current {
			a.peer.scheduleAck()
		}
	}
}

// sendReplies builds the queued responses and reports whether the batch is
// full.
func (c *Core) sendReplies(now reliability.Time, out Out) bool {
	for r := c.rdma; r.replies.Len() > 0; {
		a := r.replies.Front()
		if !a.peer.closed && !a.peer.sendReply(now, out, a) {
			return true
		}
		a.peer.pendingReplies--
		r.replies.Pop()
	}
	return false
}

// sendReply builds the packets of one response as far as the batch has space,
// and reports whether the response is complete.
func (p *Peer) sendReply(now reliability.Time, out Out, a *rdmaReply) bool {
	c, info := p.core, a.op.Info()
	if a.op != wire.UDXReadResponse {
		b := out.Next(&p.path, info.HeaderLen+wire.ICRCLen)
		if b == nil {
			return false
		}
		p.putHeaders(b, a.op, 0, a.psn, false)
		h := b[wire.BTHLen+wire.DETHLen:]
		wire.AETH{Syndrome: a.syndrome}.Put(h)
		if a.op == wire.UDXAck {
			wire.SackETH{}.Put(h[wire.AETHLen:])
		} else {
			wire.AETH{Syndrome: wire.AckSyndrome(wire.CreditUnlimited)}.Put(h)
			wire.AtomicAckETH{Orig: a.value}.Put(h[wire.AETHLen:])
		}
		c.recorder.addPacket(now, true, a.op, a.psn, uint8(a.syndrome))
		return true
	}
	for more := true; more; more = a.n > 0 {
		n := min(p.mtu, a.n)
		var src []byte
		if n > 0 {
			var f Fault
			if src, f = c.mem.Remote(a.rkey, a.value, n, verbs.AccessRemoteRead, c.num); f != NoFault { // deregistered in the meantime
				*a = rdmaReply{peer: p, op: wire.UDXAck, psn: a.psn, syndrome: wire.NakRemoteAccess}
				return p.sendReply(now, out, a)
			}
		}
		pad := wire.PadFor(int(n))
		b := out.Next(&p.path, info.HeaderLen+int(n)+pad+wire.ICRCLen)
		if b == nil {
			return false
		}
		body := b[info.HeaderLen : info.HeaderLen+int(n)+pad]
		if !loadReadSource(body[:n], src, a.repeated) {
			out.Cancel()
			*a = rdmaReply{peer: p, op: wire.UDXAck, psn: a.psn, syndrome: wire.NakRemoteOperational}
			return p.sendReply(now, out, a)
		}
		clear(body[n:])
		p.putHeaders(b, a.op, pad, a.psn, false)
		wire.RETH{VA: a.value, Length: n}.Put(b[wire.BTHLen+wire.DETHLen:])
		c.counters.SentBytes += uint64(n)
		c.recorder.addPacket(now, true, a.op, a.psn, 0)
		a.value += uint64(n)
		a.n -= n
	}
	return true
}

// sendRDMAAcks builds the pending acknowledgements and reports whether the
// batch is full. Responses must have been sent before.
func (c *Core) sendRDMAAcks(now reliability.Time, out Out) bool {
	info := wire.UDXAck.Info()
	for r := c.rdma; len(r.ackPeers) > 0; {
		last := len(r.ackPeers) - 1
		p := r.ackPeers[last]
		if !p.closed {
			b := out.Next(&p.path, info.HeaderLen+wire.ICRCLen)
			if b == nil {
				return true
			}
			psn, done := p.replay.SelectiveAck()
			p.putHeaders(b, wire.UDXAck, 0, psn, false)
			h := b[wire.BTHLen+wire.DETHLen:]
			wire.AETH{Syndrome: wire.AckSyndrome(wire.CreditUnlimited)}.Put(h)
			wire.SackETH{Done: done}.Put(h[wire.AETHLen:])
			c.recorder.addPacket(now, true, wire.UDXAck, psn, 0)
		}
		p.ackPending = false
		r.ackPeers[last] = nil
		r.ackPeers = r.ackPeers[:last]
	}
	return false
}
