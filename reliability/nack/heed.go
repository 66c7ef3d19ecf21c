package nack

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/wire"
)

// handleAck takes what a packet says about ours: a set of what has come, if it is all
// that is to be said (full), or else no more than what came in a row.
func (c *Core) handleAck(now Time, p *peer, h *Header, full bool) Drop {
	s := &p.out
	overtaken := seqAfter(s.una, h.Ack)
	switch {
	// By distance: a number half the space away is neither before nor after another.
	case !overtaken && h.Ack-s.una > s.nextSend-s.una || !seqAfter(s.txNum, h.TxEcho) || h.Sack != 0 && !seqAfter(s.nextSend, h.Ack+1+highestBit(h.Sack)):
		return DropUnsentAck
	case overtaken:
		return DropNone // by a later one
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

// markAcked notes that a packet has come to the peer, which will not ask for it.
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

// detectLosses finds what has not come although something has that left later.
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
