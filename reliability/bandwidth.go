package reliability

// A Bandwidth estimates the bandwidth-delay product of a path from the bytes that
// arrive in each round trip. The data in flight on a long path is not in the
// peer's receive buffer, so it may exceed the Window by as much. Its zero value
// has no estimate.
type Bandwidth struct {
	start   Time // of the current round; 0: none
	counted int  // bytes that have arrived in it
	rates   [bandwidthRounds]float32
	best    float32 // highest rate, bytes per nanosecond
	round   uint8
}

const (
	bandwidthRounds = 8
	// shortRound is the minimum length of a round in nanoseconds.
	shortRound = 100 * Microsecond
	// longPath is the round trip in nanoseconds from which a path holds more than
	// the window: a shorter one is that of the systems, not of the network.
	longPath = 250 * Microsecond
	// maxInFlight bounds the data in flight on any path.
	maxInFlight = 128 << 20
	// minRecoveryWindow is the minimum window after a loss in bytes.
	minRecoveryWindow = 192 << 10
)

// OnArrived records that n more bytes have arrived by now. rtt is the smoothed
// round trip in nanoseconds.
func (b *Bandwidth) OnArrived(now Time, n int, rtt int64) {
	b.counted += n
	elapsed := int64(now - b.start)
	switch {
	case b.start == 0:
		b.start, b.counted = now, 0
		return
	case rtt == 0 || elapsed < max(rtt, shortRound):
		return
	}
	b.rates[b.round%bandwidthRounds] = float32(b.counted) / float32(elapsed)
	b.round++
	b.start, b.counted = now, 0
	b.best = 0
	for _, r := range b.rates {
		b.best = max(b.best, r)
	}
}

// Limit returns the bytes that may be in flight with the given window on a path
// with a shortest round trip of rtt nanoseconds. While losses are repaired, less
// is in flight than the path and the peer's buffer hold, because a queue on the
// path would delay the repair: at most gain times the bandwidth-delay product.
func (b *Bandwidth) Limit(window int, rtt int64, recovering bool, gain float64) int {
	product := min(float64(b.best)*float64(rtt), maxInFlight)
	if rtt >= longPath {
		window += int(product * max(1.25, gain-1))
	}
	if recovering && b.best > 0 {
		window = min(window, max(int(product*gain), minRecoveryWindow))
	}
	return window
}

// OnCongestion forgets the estimate: it must be made anew.
func (b *Bandwidth) OnCongestion() { *b = Bandwidth{} }
