package nack

import (
	"fmt"
	"math/bits"
)

// invariants checks what is always so.
func (c *Core) invariants(check func(ok bool, format string, args ...any)) {
	keptSlots, early := 0, 0
	for _, p := range c.peers {
		if p == nil {
			continue
		}
		s, r := &p.out, &p.in
		n := int(s.next - s.una)
		check(n <= Window && !after(s.una, s.fresh) && !after(s.fresh, s.next), "peer %d: %d %d %d", p.number, s.una, s.fresh, s.next)
		check((s.ring != nil) == (n > 0), "peer %d: %d packets and ring %v", p.number, n, s.ring != nil)
		flying := 0
		if s.ring != nil {
			check(s.ring.lost&s.ring.there == 0, "peer %d: lost and there", p.number)
			for seq := s.una; seq != s.next; seq++ {
				if s.ring.there&bit(seq) != 0 {
					continue
				}
				i := s.ring.slot[place(seq)]
				keptSlots++
				check(c.slots.state[i]&kept != 0 && int(c.slots.owner[i]) == p.number, "peer %d: packet %d is not its own", p.number, seq)
				if after(s.fresh, seq) && s.ring.lost&bit(seq) == 0 {
					flying += cost(int(c.slots.length[i]))
				}
			}
			check((s.ring.lost|s.ring.there)&^from(1<<int(s.fresh-s.una)-1, -s.una) == 0 || s.fresh-s.una == Window, "peer %d: sets beyond what has left", p.number)
		}
		check(flying == s.flying, "peer %d: %d bytes fly, it says %d", p.number, flying, s.flying)
		check(!s.outstanding() || s.askAt != 0, "peer %d is never asked", p.number)
		check(c.deadline(p) == 0 || p.timer.at != 0 && p.timer.at <= c.deadline(p), "peer %d has no timer", p.number)
		check(!after(r.expected, r.known), "peer %d: known %d, expected %d", p.number, r.known, r.expected)
		if b := r.inbox; b != nil {
			check(b.held != 0 && b.held&bit(r.expected) == 0, "peer %d: an inbox of %b", p.number, b.held)
			for set := b.held; set != 0; set &= set - 1 {
				early += len(b.packet[bits.TrailingZeros64(set)].payload)
			}
		}
		check((r.length == 0) == (r.message == nil) && (r.length == 0 || len(r.message) < int(r.length)), "peer %d: %d of %d bytes", p.number, len(r.message), r.length)
		if _, ok := c.ready(p); ok && p.open {
			check(p.active, "peer %d has something to send and no turn", p.number)
		}
	}
	free := 0
	for _, state := range c.slots.state {
		if state == 0 {
			free++
		}
		if state&kept != 0 {
			keptSlots--
		}
	}
	check(keptSlots == 0, "%d slots are kept for nobody, or not", -keptSlots)
	check(free == len(c.slots.free), "%d slots are free, %d in the list", free, len(c.slots.free))
	check(early == c.early && early <= c.o.Early, "%d bytes are early, it says %d of %d", early, c.early, c.o.Early)
}

// idle says what an end has that it should not when nothing is under way.
func (c *Core) idle() error {
	for _, p := range c.peers {
		if p != nil && (p.out.ring != nil || p.in.inbox != nil || p.in.message != nil || c.deadline(p) != 0 || p.waiting || p.starving) {
			return fmt.Errorf("peer %d is not idle: una %d next %d, inbox %v, %d of %d bytes, waiting %v, starving %v, due %d", p.number, p.out.una, p.out.next,
				p.in.inbox != nil, len(p.in.message), p.in.length, p.waiting, p.starving, c.deadline(p))
		}
	}
	if n := len(c.slots.state) - len(c.slots.free); n > 0 {
		return fmt.Errorf("%d slots are not free", n)
	}
	if c.early != 0 || c.active.Len() != 0 || c.starved.Len() != 0 || c.events.Len() != 0 || len(c.timers) != 0 {
		return fmt.Errorf("early %d, active %d, starved %d, events %d, timers %d", c.early, c.active.Len(), c.starved.Len(), c.events.Len(), len(c.timers))
	}
	return nil
}
