package nack

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/wire"
)

// handleAck applies the acknowledgement in h to p's send window. If full is
// set, h.Sack is the complete set of packets received out of order; otherwise
// only the cumulative h.Ack is valid.
func (c *Core) handleAck(now Time, p *peer, h *Header, full bool) Drop {
	s := &p.out
	overtaken := seqAfter(s.una, h.Ack)
	switch {
	// Compare distances: two numbers half the space apart have no order.
	case !overtaken && h.Ack-s.una > s.nextSend-s.una || !seqAfter(s.txNum, h.TxEcho) || h.Sack != 0 && !seqAfter(s.nextSend, h.Ack+1+highestBit(h.Sack)):
		return DropUnsentAck
	case overtaken:
		return DropNone // by a later acknowledgement
	}
	if seqAfter(h.TxEcho, s.txEcho) {
		s.txEcho, s.probes = h.TxEcho, 0
		s.refusals, s.attemptRefused = 0, false
		if psn, ok := s.rtt.TimedPSN(); ok && wire.PSN(h.TxEcho&wire.PSNMask).Sub(psn) >= 0 {
			s.rtt.OnAck(now)
		}
	}
	if s.ring == nil {
		return DropNone
	}
	before, moved := s.inFlight, s.una != h.Ack
	if moved {
		s.lastProgress = now
	}
	for ; s.una != h.Ack; s.una++ {
		c.markAcked(p, s.una)
		s.ring.acked &^= seqBit(s.una)
	}
	for set := h.Sack; set != 0; set &= set - 1 {
		seq := h.Ack + 1 + lowestBit(set)
		c.markAcked(p, seq)
		s.ring.acked |= seqBit(seq)
	}
	s.window.OnAck(before - s.inFlight)
	if full {
		c.detectLosses(now, p, h.TxEcho)
	}
	switch {
	case !s.hasUnacked():
		s.probeAt, p.control.probe = 0, false
	case moved || full:
		s.probeAt = now + s.probeInterval()
	}
	if s.una == s.nextQueue {
		c.freeSendRing(p)
	}
	return DropNone
}

// markAcked records that the peer has received packet seq, and releases its
// slot.
func (c *Core) markAcked(p *peer, seq uint32) {
	s := &p.out
	if s.ring.acked&seqBit(seq) != 0 {
		return
	}
	i := s.ring.slot[slotIndex(seq)]
	if s.ring.lost&seqBit(seq) == 0 {
		s.inFlight -= windowCost(int(c.slots.length[i]))
	}
	s.ring.lost &^= seqBit(seq)
	c.slots.release(i, retained)
}

// detectLosses declares lost all packets that are unacknowledged although a
// packet sent later has been received.
func (c *Core) detectLosses(now Time, p *peer, echo uint32) {
	s := &p.out
	some := false
	for seq := s.una; seq != s.nextSend; seq++ {
		if (s.ring.acked|s.ring.lost)&seqBit(seq) == 0 && seqAfter(echo, s.ring.txNum[slotIndex(seq)]) {
			s.ring.lost |= seqBit(seq)
			s.inFlight -= windowCost(int(c.slots.length[s.ring.slot[slotIndex(seq)]]))
			some = true
		}
	}
	if some {
		s.window.OnLoss(now, max(s.rtt.Smoothed(), reliability.Millisecond))
	}
}
