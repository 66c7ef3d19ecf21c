package reliability

import "github.com/softrnic/softrnic/wire"

// A Scoreboard tracks which of the packets in flight have arrived at the peer,
// and detects lost ones by the order of transmissions (RACK, RFC 8985): a packet
// is lost if one that was sent later has arrived and the time for reordering has
// passed, or, before reordering was observed, if three later ones have arrived.
// This applies to retransmissions, too. A requester has one Scoreboard for its
// requests and one for the responses to READs and atomics, with the same PSNs,
// but only while packets have arrived out of order, were lost or retransmitted: a
// nil Scoreboard has no such packet.
type Scoreboard struct {
	pool   *ScoreboardPool
	una    wire.PSN // all packets before it are acknowledged
	done   psnSet   // arrived
	lost   psnSet   // must be sent again
	resent psnSet   // the last transmission is in resends
	again  psnSet   // a retransmission was lost
	log    *SendLog
	order  *Reordering

	resends []resend // in the order of sending
	oldest  int      // index of the first one in use
	judged  wire.PSN // first transmissions before it have arrived or were lost

	newest   arrival  // the last transmission that has arrived, of those in the order of sending
	ahead    arrival  // the last of those that overtake others, see ResetResponses
	overtake bool     // retransmissions overtake first transmissions
	prior    arrival  // newest before the arrivals of the time latest, which have no order
	latest   Time     // time of the last arrival
	highest  wire.PSN // one past the highest PSN that has arrived
	due      Time     // when Detect must be called again, or 0
	found    []wire.PSN
}

// An arrival is a transmission that has arrived.
type arrival struct {
	serial uint64
	psn    wire.PSN
	at     Time  // when it was sent; 0: none
	rtt    int64 // its round trip
	resent bool  // it is a retransmission, so that rtt may be that of another transmission
}

// isAfter reports whether a was sent after a transmission of p.
func (a *arrival) isAfter(serial uint64, p wire.PSN) bool {
	return a.at != 0 && (serial < a.serial || serial == a.serial && p.Less(a.psn))
}

// A resend is a retransmission.
type resend struct {
	psn    wire.PSN
	at     Time
	serial uint64
	probe  bool
}

// A ScoreboardPool has Scoreboards that are not in use, with their memory. The
// calls that use one must be serialized. The zero value is empty.
type ScoreboardPool struct{ free []*Scoreboard }

const (
	maxPooledScoreboards = 64   // Scoreboards that a pool keeps
	maxPooledResends     = 1024 // retransmissions for which one of them has memory
)

// New returns a Scoreboard with una as the oldest packet in flight. For the
// responses to READs and atomics, overtake is set: a responder sends those that
// were requested again before the ones in its queue, so that they say nothing
// about these.
func (p *ScoreboardPool) New(una wire.PSN, log *SendLog, order *Reordering, overtake bool) *Scoreboard {
	b := new(Scoreboard)
	if k := len(p.free); k > 0 {
		b, p.free = p.free[k-1], p.free[:k-1]
	}
	*b = Scoreboard{
		pool: p, una: una, judged: una, highest: una, log: log, order: order, overtake: overtake,
		done: b.done, lost: b.lost, resent: b.resent, again: b.again, resends: b.resends[:0], found: b.found[:0],
	}
	return b
}

// Free ends the use of b, which may be nil. It returns its memory to the pool.
func (b *Scoreboard) Free() {
	if b == nil || len(b.pool.free) == maxPooledScoreboards || cap(b.resends) > maxPooledResends || cap(b.found) > maxPooledResends {
		return
	}
	for _, s := range []*psnSet{&b.done, &b.lost, &b.resent, &b.again} {
		if s.n > 0 {
			s.reset()
		}
	}
	b.log, b.order = nil, nil
	b.pool.free = append(b.pool.free, b)
}

// Active reports whether packets have arrived out of order, were lost or were
// retransmitted.
func (b *Scoreboard) Active() bool {
	return b != nil && b.done.n+b.lost.n+b.resent.n > 0
}

// HasArrived reports whether p, which is not acknowledged, has arrived.
func (b *Scoreboard) HasArrived(p wire.PSN) bool { return b != nil && b.done.has(p) }

// IsLost reports whether p must be sent again.
func (b *Scoreboard) IsLost(p wire.PSN) bool { return b != nil && b.lost.has(p) }

// IsLostAgain reports whether a retransmission of p was lost.
func (b *Scoreboard) IsLostAgain(p wire.PSN) bool { return b != nil && b.again.has(p) }

// Counts returns the number of packets that have arrived ahead of others, and of
// packets that must be sent again.
func (b *Scoreboard) Counts() (arrived, lost int) {
	if b == nil {
		return 0, 0
	}
	return b.done.n, b.lost.n
}

// Advance records that all packets before una are acknowledged. It returns b while
// that is active, and otherwise frees it and returns nil.
func (b *Scoreboard) Advance(una wire.PSN) *Scoreboard {
	b.done.removeRange(b.una, una)
	b.lost.removeRange(b.una, una)
	b.resent.removeRange(b.una, una)
	b.again.removeRange(b.una, una)
	if !b.Active() {
		b.Free()
		return nil
	}
	if b.resent.n == 0 {
		b.resends, b.oldest = b.resends[:0], 0
	}
	b.una = una
	if b.judged.Less(una) {
		b.judged = una
	}
	if b.highest.Less(una) {
		b.highest = una
	}
	return b
}

// OnArrived records that p, which is in flight, has arrived, and reports whether
// this is new. It may have been lost before.
func (b *Scoreboard) OnArrived(now Time, p wire.PSN) bool {
	if p.Less(b.una) || !b.done.add(b.una, p) {
		return false
	}
	b.lost.remove(p)
	if b.highest.LessEq(p) {
		b.highest = p.Add(1)
	}
	if b.latest != now {
		b.prior, b.latest = b.newest, now
	}
	at, serial := b.log.sentAt(p)
	resent := false
	switch e, ok := b.popResend(p); {
	case ok && int64(now-e.at) >= b.order.shortest:
		if b.overtake && !e.probe {
			if !b.ahead.isAfter(e.serial, p) {
				b.ahead = arrival{e.serial, p, e.at, int64(now - e.at), true}
			}
			return true
		}
		at, serial, resent = e.at, e.serial, true
	case at == 0:
		return true
	default: // the first transmission has arrived, perhaps after all
		b.order.Sample(now, int64(now-at))
		if b.prior.isAfter(serial, p) {
			b.order.observe(now, max(0, int64(now-at)-b.prior.rtt))
		}
	}
	if !b.newest.isAfter(serial, p) {
		b.newest = arrival{serial, p, at, int64(now - at), resent}
	}
	return true
}

// popResend returns the last retransmission of p, which is not in flight any more,
// and reports whether there is one.
func (b *Scoreboard) popResend(p wire.PSN) (resend, bool) {
	if !b.resent.remove(p) {
		return resend{}, false
	}
	for i := len(b.resends) - 1; i >= b.oldest; i-- {
		if b.resends[i].psn == p {
			return b.resends[i], true
		}
	}
	return resend{}, false
}

// NewestRTT returns the round trip of the last packet sent that has arrived, in
// nanoseconds, or 0, and whether that was a retransmission: then it is too short
// if the first transmission has arrived instead.
func (b *Scoreboard) NewestRTT() (rtt int64, resent bool) { return b.newest.rtt, b.newest.resent }

// Detect returns the packets before top that are lost now and were not before.
// The result is valid until the next call.
func (b *Scoreboard) Detect(now Time, top wire.PSN) []wire.PSN {
	b.found, b.due = b.found[:0], 0
	// An arrival may be reported late, so the observed delay is bounded by a round trip.
	tolerance := min(b.order.tolerance(), max(b.newest.rtt, b.ahead.rtt))
	wait := Time(b.newest.rtt + tolerance)
	reordered := b.order.seen(now)
	for ; b.newest.at != 0 && b.judged.Less(top); b.judged = b.judged.Add(1) {
		p := b.judged
		if b.done.has(p) || b.resent.has(p) || b.lost.has(p) {
			continue
		}
		at, serial := b.log.sentAt(p)
		if at == 0 || !b.newest.isAfter(serial, p) {
			break
		}
		if now < at+wait && (reordered || b.highest.Sub(p) <= duplicateThreshold) {
			b.due = at + wait
			break
		}
		b.markLost(p)
	}
	for ; b.oldest < len(b.resends); b.oldest++ {
		e := b.resends[b.oldest]
		if !b.resent.has(e.psn) {
			continue
		}
		due := e.at + wait
		switch {
		case b.ahead.isAfter(e.serial, e.psn):
			due = e.at + Time(b.ahead.rtt+tolerance)
		case !b.newest.isAfter(e.serial, e.psn):
			due = 0
		}
		if due == 0 {
			break
		}
		if now < due {
			b.due = Earlier(b.due, due)
			break
		}
		b.resent.remove(e.psn)
		b.again.add(b.una, e.psn)
		b.markLost(e.psn)
	}
	if b.oldest > 64 && b.oldest > len(b.resends)/2 {
		b.resends, b.oldest = b.resends[:copy(b.resends, b.resends[b.oldest:])], 0
	}
	return b.found
}

func (b *Scoreboard) markLost(p wire.PSN) {
	b.lost.add(b.una, p)
	b.found = append(b.found, p)
}

// Deadline returns the time when Detect must be called again, or 0.
func (b *Scoreboard) Deadline() Time {
	if !b.Active() {
		return 0
	}
	return b.due
}

// Lose records that p is lost, although it may have arrived, and reports whether
// it had not been lost before.
func (b *Scoreboard) Lose(p wire.PSN) bool {
	if p.Less(b.una) {
		return false
	}
	b.done.remove(p)
	b.resent.remove(p)
	return b.lost.add(b.una, p)
}

// Forget records that no packet before top is lost or in flight, and, unless
// keepArrived is set, that none has arrived out of order. Lose then adds the
// packets to be sent again.
func (b *Scoreboard) Forget(top wire.PSN, keepArrived bool) {
	if !keepArrived {
		b.done.reset()
	}
	b.lost.reset()
	b.resent.reset()
	b.again.reset()
	b.resends, b.oldest, b.due = b.resends[:0], 0, 0
	b.judged = top
}

// NextLost returns the first lost packet from from to before end.
func (b *Scoreboard) NextLost(from, end wire.PSN) (p wire.PSN, ok bool) {
	if b == nil {
		return 0, false
	}
	return b.lost.next(from, end)
}

// Unlose records that p need not be sent again.
func (b *Scoreboard) Unlose(p wire.PSN) { b.lost.remove(p) }

// OnResent records that p was sent again, perhaps as a probe, which no other
// packet in flight precedes.
func (b *Scoreboard) OnResent(now Time, p wire.PSN, probe bool) {
	b.lost.remove(p)
	b.done.remove(p)
	b.resent.add(b.una, p)
	b.resends = append(b.resends, resend{p, now, b.log.nextSerial(), probe})
}
