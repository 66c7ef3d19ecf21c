package nack

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/wire"
)

// heed takes what a packet says about ours: a set of what has come, if it is all
// that is to be said (full), or else no more than what came in a row.
func (c *Core) heed(now Time, p *peer, h *Header, full bool) Drop {
	s := &p.out
	overtaken := after(s.una, h.Ack)
	switch {
	// By distance: a number half the space away is neither before nor after another.
	case !overtaken && h.Ack-s.una > s.fresh-s.una || !after(s.order, h.Echo) || h.Have != 0 && !after(s.fresh, h.Ack+1+highest(h.Have)):
		return DropNeverSent
	case overtaken:
		return DropNone // by a later one
	}
	if after(h.Echo, s.echo) {
		s.echo, s.asks = h.Echo, 0
		s.refusals, s.refused = 0, false
		if psn, ok := s.rtt.Timing(); ok && wire.PSN(h.Echo&wire.PSNMask).Sub(psn) >= 0 {
			s.rtt.Acked(now)
		}
	}
	if s.ring == nil {
		return DropNone
	}
	before, moved := s.flying, s.una != h.Ack
	if moved {
		s.progress = now
	}
	for ; s.una != h.Ack; s.una++ {
		c.arrived(p, s.una)
		s.ring.there &^= bit(s.una)
	}
	for set := h.Have; set != 0; set &= set - 1 {
		seq := h.Ack + 1 + lowest(set)
		c.arrived(p, seq)
		s.ring.there |= bit(seq)
	}
	s.window.Acked(before - s.flying)
	if full {
		c.lose(now, p, h.Echo)
	}
	switch {
	case !s.outstanding():
		s.askAt, p.owe.ask = 0, false
	case moved || full:
		s.askAt = now + s.patience()
	}
	if s.una == s.next {
		c.freeOutbox(p)
	}
	return DropNone
}

// arrived notes that a packet has come to the peer, which will not ask for it.
func (c *Core) arrived(p *peer, seq uint32) {
	s := &p.out
	if s.ring.there&bit(seq) != 0 {
		return
	}
	i := s.ring.slot[place(seq)]
	if s.ring.lost&bit(seq) == 0 {
		s.flying -= cost(int(c.slots.length[i]))
	}
	s.ring.lost &^= bit(seq)
	c.slots.clear(i, kept)
}

// lose finds what has not come although something has that left later.
func (c *Core) lose(now Time, p *peer, echo uint32) {
	s := &p.out
	some := false
	for seq := s.una; seq != s.fresh; seq++ {
		if (s.ring.there|s.ring.lost)&bit(seq) == 0 && after(echo, s.ring.order[place(seq)]) {
			s.ring.lost |= bit(seq)
			s.flying -= cost(int(c.slots.length[s.ring.slot[place(seq)]]))
			some = true
		}
	}
	if some {
		s.window.Lost(now, max(s.rtt.Smoothed(), reliability.Millisecond))
	}
}
