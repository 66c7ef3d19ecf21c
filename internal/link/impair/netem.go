package impair

import (
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/wire"
)

// A delivery is one copy of a packet: when it is sent and how it is altered.
type delivery struct {
	due   int64  // send time
	flips [3]int // bits to invert after sealing
	nflip int
	mark  bool
}

func (f *delivery) addFlip(bit int) {
	f.flips[f.nflip] = bit
	f.nflip++
}

// deliveries are the copies of a packet: at most a rule's duplicate and one of
// each by the Spec.
type deliveries struct {
	list [4]delivery
	n    int
}

// isUnchanged reports whether the packet is sent now, once and unaltered.
func (f *deliveries) isUnchanged(now int64) bool {
	return f.n == 1 && f.list[0].due <= now && f.list[0].nflip == 0 && !f.list[0].mark
}

// netem decides the deliveries of packets, in the order of the kernel's
// sch_netem.c: duplicate, lose, corrupt, reorder or delay, pace.
type netem struct {
	active bool
	ecn    bool
	loss   lossProcess

	duplicate, corrupt, reorder chance

	gap     int
	inGap   int // packets since the last one that was reordered
	delay   Delay
	jitter  correlated
	rate    int64
	last    int64 // send time of the last paced or delayed packet
	headers int   // of IP and UDP
	random  random

	counters *counters
}

// newNetem returns the netem of a valid Spec.
func newNetem(s *Spec, local netip.Addr, random random, counters *counters) netem {
	n := netem{
		active:    s.usesNetem(),
		ecn:       s.ECN,
		duplicate: newChance(s.Duplicate),
		corrupt:   newChance(s.Corrupt),
		reorder:   newChance(s.Reorder.Chance),
		gap:       s.Reorder.Gap,
		delay:     s.Delay,
		jitter:    newCorrelated(s.Delay.Correlation),
		rate:      s.Rate,
		headers:   wire.IPv6Len + wire.UDPLen,
		random:    random,
		counters:  counters,
	}
	if local.Is4() {
		n.headers = wire.IPv4Len + wire.UDPLen
	}
	if s.Loss != nil {
		n.loss = s.Loss.newProcess()
	}
	return n
}

// addDeliveries adds the deliveries of a packet of the given size. capable
// reports whether its traffic class is ECN-capable.
func (n *netem) addDeliveries(now int64, bytes int, capable bool, f *deliveries) {
	if !n.active {
		f.list[f.n] = delivery{due: now}
		f.n++
		return
	}
	copies := 1
	if n.duplicate.happens(&n.random) {
		copies++
	}
	n.addCopies(now, bytes, capable, copies, f)
}

// addCopies adds one or two copies of a packet, or one less if it is lost. A
// duplicate is processed separately, but not duplicated again.
func (n *netem) addCopies(now int64, bytes int, capable bool, copies int, f *deliveries) {
	mark := false
	if n.loss != nil && n.loss.isLost(&n.random) {
		if n.ecn && capable {
			mark = true
			n.counters.marked.Add(1)
		} else {
			copies--
			n.counters.lost.Add(1)
		}
	}
	switch copies {
	case 0:
		return
	case 2:
		n.counters.duplicated.Add(1)
		n.addCopies(now, bytes, capable, 1, f)
	}
	one := delivery{mark: mark}
	if n.corrupt.happens(&n.random) {
		one.addFlip(n.random.below(8 * bytes))
		n.counters.corrupted.Add(1)
	}
	one.due = n.departureTime(now, bytes)
	f.list[f.n] = one
	f.n++
}

// departureTime returns the send time of a packet.
func (n *netem) departureTime(now int64, bytes int) int64 {
	if n.reorder.below > 0 && n.inGap >= n.gap-1 && n.reorder.happens(&n.random) {
		n.inGap = 0
		n.counters.reordered.Add(1)
		return now
	}
	n.inGap++
	delay := int64(n.delay.Mean)
	if n.delay.Jitter > 0 {
		delay = int64(n.delay.spread(n.jitter.next(&n.random)))
	}
	if n.rate > 0 {
		if n.last > now { // the queueing time counts for the delay
			delay = max(0, delay-(n.last-now))
			now = n.last
		}
		delay += int64(bytes+n.headers) * 8 * int64(time.Second) / n.rate
	}
	n.last = now + max(0, delay)
	return n.last
}
