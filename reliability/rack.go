package reliability

// A Reordering estimates for how long a packet may be overtaken by later ones
// before it counts as lost (RFC 8985, section 6.2). It starts with a quarter of
// the shortest round trip, grows with the delays that it observes, and shrinks
// when none was observed for a while.
type Reordering struct {
	shortest   int64 // round trip in nanoseconds, 0 before the first sample
	shortestAt Time
	lag        int64 // nanoseconds; longest observed delay with some margin
	observedAt Time  // of the last observation, 0 for none
}

// reorderMemory is the time in nanoseconds after which an observed delay is
// forgotten, and so is the shortest round trip.
const reorderMemory = 10_000 * Millisecond

// Sample records a round trip in nanoseconds of a packet that was sent once.
func (r *Reordering) Sample(now Time, rtt int64) {
	if r.shortest == 0 || rtt < r.shortest || now-r.shortestAt > reorderMemory {
		r.shortest, r.shortestAt = max(rtt, 1), now
	}
}

// Shortest returns the shortest recent round trip in nanoseconds, 0 before the
// first sample.
func (r *Reordering) Shortest() int64 { return r.shortest }

// observe records that a packet arrived lag nanoseconds after it was overtaken.
func (r *Reordering) observe(now Time, lag int64) {
	r.observedAt = now
	r.lag = max(r.lag, lag+lag/4)
}

// OnSpurious records that a packet was retransmitted although its first
// transmission arrived, with a smoothed round trip of rtt nanoseconds.
func (r *Reordering) OnSpurious(now Time, rtt int64) {
	r.observedAt = now
	r.lag = min(max(2*r.lag, r.shortest/2), max(rtt, r.shortest))
}

// seen reports whether packets were overtaken recently.
func (r *Reordering) seen(now Time) bool {
	if r.observedAt != 0 && now-r.observedAt > reorderMemory {
		r.observedAt, r.lag = 0, 0
	}
	return r.observedAt != 0
}

// tolerance returns the nanoseconds for which a packet may be overtaken.
func (r *Reordering) tolerance() int64 { return max(r.lag, r.shortest/4) }

// duplicateThreshold is the number of later packets whose arrival shows the loss
// of a packet while no reordering was observed.
const duplicateThreshold = 3
