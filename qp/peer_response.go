package qp

import (
	"fmt"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

func (p *Peer) handleResponse(now reliability.Time, pkt *wire.Packet) (drop wire.Drop) {
	switch pkt.Info.Operation {
	case wire.OpAck:
		drop = p.handleAck(now, pkt)
	case wire.OpReadResponse:
		drop = p.handleReadResponse(now, pkt)
	default:
		drop = p.handleAtomicResponse(now, pkt)
	}
	if p.deadline == 0 && p.outstanding > 0 { // markAlive has cleared it
		p.setDeadline(now)
		p.markActive()
	}
	return drop
}

// handleAck handles a selective acknowledgement of writes, or a NAK.
func (p *Peer) handleAck(now reliability.Time, pkt *wire.Packet) wire.Drop {
	psn, syndrome, done := pkt.BTH.PSN, pkt.AETH().Syndrome, pkt.SackETH().Done
	switch {
	case !psn.Less(p.next):
		return wire.DropGhostResponse
	case syndrome.Kind() == wire.KindNAK:
		return p.handleNAK(now, psn, syndrome)
	case syndrome.Kind() != wire.KindAck:
		return wire.DropBadSyndrome
	}
	if psn.Less(p.una.Add(-1)) || p.outstanding == 0 {
		return wire.DropNone // overtaken by a later acknowledgement
	}
	p.markAlive(now)
	lost := false
	lossDelay := reliability.Time(max(p.rtt.Smoothed(), 100*reliability.Microsecond))
	for i := range reliability.ReplayWindow {
		seq := psn.Add(-i)
		if p.outstanding == 0 || seq.Less(p.una) {
			break
		}
		s := p.findInFlight(seq)
		switch {
		case s == nil:
		case done&(1<<i) == 0: // a later packet was received
			if !s.lost && now-s.sentAt > lossDelay {
				p.declareLost(s)
				lost = true
			}
		case s.op.op == verbs.WRRDMAWrite:
			p.completeSlot(now, seq, s)
		}
	}
	if lost {
		p.window.OnLoss(now, int64(lossDelay))
		p.cautious = cautiousMessages
		p.markActive()
	}
	return wire.DropNone
}

// handleNAK fails the operation that a NAK rejects. Other operations continue.
func (p *Peer) handleNAK(now reliability.Time, psn wire.PSN, syndrome wire.Syndrome) wire.Drop {
	s := p.findInFlight(psn)
	if s == nil {
		return wire.DropDuplicate
	}
	status, cause := verbs.WCRemOpErr, ""
	switch syndrome {
	case wire.NakInvalidRequest:
		status, cause = verbs.WCRemInvReqErr, "the peer does not permit it (verbs.PeerAttr.Access), or its memory for an atomic is not aligned to 8 bytes"
	case wire.NakRemoteOperational:
		cause = "the peer cannot access its own memory: it was unmapped or protected after it was registered, or its file was truncated"
	case wire.NakRemoteAccess:
		status, cause = verbs.WCRemAccessErr, "a wrong or stale rkey, a range outside the region, a region of another protection domain, or one without the permission"
	}
	o := s.op
	o.setFailure(status, &verbs.Failure{Event: fmt.Sprintf("peer responded %v (0x%02x)", syndrome, uint8(syndrome)), PSN: uint32(psn),
		Key: o.rkey, Addr: o.remote, Length: o.length, Cause: cause})
	p.markAlive(now)
	p.completeSlot(now, psn, s)
	return wire.DropNone
}

// handleReadResponse stores one packet of a read response.
func (p *Peer) handleReadResponse(now reliability.Time, pkt *wire.Packet) wire.Drop {
	s := p.findInFlight(pkt.BTH.PSN)
	if s == nil {
		return wire.DropDuplicate
	}
	o, h, n := s.op, pkt.RETH(), uint32(len(pkt.Payload))
	off := h.VA - (o.remote + uint64(s.off))
	if o.op != verbs.WRRDMARead || off >= uint64(max(s.n, 1)) || off%uint64(p.mtu) != 0 || n != min(p.mtu, s.n-uint32(off)) {
		return wire.DropGhostResponse
	}
	piece := uint32(1) << (uint32(off) / p.mtu)
	if s.received&piece != 0 {
		return wire.DropDuplicate
	}
	c := p.core
	p.markAlive(now)
	if o.status == verbs.WCSuccess {
		if m := c.scatter(o.sgl, s.off+uint32(off), pkt.Payload); !m.ok() {
			o.setFailure(verbs.WCLocProtErr, localFailure(m))
		}
	}
	c.counters.RcvdBytes += uint64(n)
	c.readWindow.OnAck(int(n))
	s.received |= piece
	order := s.txNum
	switch all := uint32(1)<<p.responsePackets(s) - 1; {
	case s.received == all:
		p.completeSlot(now, pkt.BTH.PSN, s)
	case off+uint64(n) == uint64(s.n) && !s.lost:
		p.declareLost(s) // packets before the last are missing
		p.markActive()
	}
	if p.outstanding > 0 {
		p.detectLosses(now, order)
	}
	return wire.DropNone
}

// handleAtomicResponse stores the original value of an atomic.
func (p *Peer) handleAtomicResponse(now reliability.Time, pkt *wire.Packet) wire.Drop {
	s := p.findInFlight(pkt.BTH.PSN)
	if s == nil {
		return wire.DropDuplicate
	}
	if !isAtomic(s.op.op) {
		return wire.DropGhostResponse
	}
	var b [8]byte
	putHost(b[:], pkt.AtomicAckETH().Orig)
	if m := p.core.scatter(s.op.sgl, 0, b[:]); !m.ok() {
		s.op.setFailure(verbs.WCLocProtErr, localFailure(m))
	}
	p.markAlive(now)
	order := s.txNum
	p.completeSlot(now, pkt.BTH.PSN, s)
	if p.outstanding > 0 {
		p.detectLosses(now, order)
	}
	return wire.DropNone
}
