package nack

import (
	"fmt"
	"math/bits"
)

// invariants checks the invariants of c.
func (c *Core) invariants(check func(ok bool, format string, args ...any)) {
	keptSlots, early := 0, 0
	for _, p := range c.peers.All() {
		s, r := &p.out, &p.in
		n := int(s.nextQueue - s.una)
		check(n <= Window && !seqAfter(s.una, s.nextSend) && !seqAfter(s.nextSend, s.nextQueue), "peer %d: %d %d %d", p.number, s.una, s.nextSend, s.nextQueue)
		check((s.ring != nil) == (n > 0), "peer %d: %d packets and ring %v", p.number, n, s.ring != nil)
		flying := 0
		if s.ring != nil {
			check(s.ring.lost&s.ring.acked == 0, "peer %d: lost and there", p.number)
			for seq := s.una; seq != s.nextQueue; seq++ {
				if s.ring.acked&seqBit(seq) != 0 {
					continue
				}
				i := s.ring.slot[slotIndex(seq)]
				keptSlots++
				check(c.slots.state[i]&retained != 0 && int(c.slots.owner[i]) == p.number, "peer %d: packet %d is not its own", p.number, seq)
				if seqAfter(s.nextSend, seq) && s.ring.lost&seqBit(seq) == 0 {
					flying += windowCost(int(c.slots.length[i]))
				}
			}
			check((s.ring.lost|s.ring.acked)&^rotateSet(1<<int(s.nextSend-s.una)-1, -s.una) == 0 || s.nextSend-s.una == Window, "peer %d: sets beyond what has left", p.number)
		}
		check(flying == s.inFlight, "peer %d: %d bytes fly, it says %d", p.number, flying, s.inFlight)
		check(!s.hasUnacked() || s.probeAt != 0, "peer %d is never probed", p.number)
		check(c.peerDeadline(p) == 0 || p.timer.At() != 0 && p.timer.At() <= c.peerDeadline(p), "peer %d has no timer", p.number)
		check(!seqAfter(r.expected, r.knownSent), "peer %d: known %d, expected %d", p.number, r.knownSent, r.expected)
		if b := r.reorder; b != nil {
			check(b.held != 0 && b.held&seqBit(r.expected) == 0, "peer %d: an inbox of %b", p.number, b.held)
			for set := b.held; set != 0; set &= set - 1 {
				early += len(b.packet[bits.TrailingZeros64(set)].payload)
			}
		}
		check((r.messageLen == 0) == (r.partial == nil) && (r.messageLen == 0 || len(r.partial) < int(r.messageLen)), "peer %d: %d of %d bytes", p.number, len(r.partial), r.messageLen)
		if _, ok := c.nextReady(p); ok && p.open {
			check(p.active, "peer %d has something to send and no turn", p.number)
		}
	}
	free := 0
	for _, state := range c.slots.state {
		if state == 0 {
			free++
		}
		if state&retained != 0 {
			keptSlots--
		}
	}
	check(keptSlots == 0, "%d slots are retained without a packet, or not retained", -keptSlots)
	check(free == len(c.slots.free), "%d slots are free, %d in the list", free, len(c.slots.free))
	check(early == c.reorderBytes && early <= c.o.ReorderBytes, "%d bytes are early, it says %d of %d", early, c.reorderBytes, c.o.ReorderBytes)
}

// idle returns an error if c holds state of packets in flight.
func (c *Core) idle() error {
	for _, p := range c.peers.All() {
		if p.out.ring != nil || p.in.reorder != nil || p.in.partial != nil || c.peerDeadline(p) != 0 || p.blocked || p.slotStarved {
			return fmt.Errorf("peer %d is not idle: una %d next %d, inbox %v, %d of %d bytes, waiting %v, starving %v, due %d", p.number, p.out.una, p.out.nextQueue,
				p.in.reorder != nil, len(p.in.partial), p.in.messageLen, p.blocked, p.slotStarved, c.peerDeadline(p))
		}
	}
	if n := len(c.slots.state) - len(c.slots.free); n > 0 {
		return fmt.Errorf("%d slots are not free", n)
	}
	if c.reorderBytes != 0 || c.active.Len() != 0 || c.slotWaiters.Len() != 0 || c.events.Len() != 0 || c.timers.Len() != 0 {
		return fmt.Errorf("early %d, active %d, starved %d, events %d, timers %d", c.reorderBytes, c.active.Len(), c.slotWaiters.Len(), c.events.Len(), c.timers.Len())
	}
	return nil
}
