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
	grown   float32 // best when it last grew by a quarter
	round   uint8
	flat    uint8 // rounds since then
	limited bool  // the window has limited the bytes in flight in this round
}

const (
	bandwidthRounds = 8
	// startupRounds is the number of rounds without growth after which the path is
	// full, so that the estimate is its bandwidth (BBR, draft-ietf-ccwg-bbr).
	startupRounds = 3
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
	rate, limited := float32(b.counted)/float32(elapsed), b.limited
	b.start, b.counted, b.limited = now, 0, false
	if !limited && rate < b.best {
		return // there was less to send
	}
	b.rates[b.round%bandwidthRounds] = rate
	b.round++
	b.best = 0
	for _, r := range b.rates {
		b.best = max(b.best, r)
	}
	if b.best >= 1.25*b.grown {
		b.grown, b.flat = b.best, 0
	} else if b.flat < startupRounds {
		b.flat++
	}
}

// OnLimited records that more bytes would be in flight if Limit permitted.
func (b *Bandwidth) OnLimited() { b.limited = true }

// Limit returns the bytes that may be in flight with the given window on a path
// with a shortest round trip of rtt nanoseconds. While losses are repaired, less
// is in flight than the path and the peer's buffer hold, because a queue on the
// path would delay the repair: at most gain times the bandwidth-delay product,
// once that has been measured.
func (b *Bandwidth) Limit(window int, rtt int64, recovering bool, gain float64) int {
	product := min(float64(b.best)*float64(rtt), maxInFlight)
	if rtt >= longPath {
		window += int(product * max(1.25, gain-1))
	}
	if recovering && b.best > 0 && b.flat == startupRounds {
		window = min(window, max(int(product*gain), minRecoveryWindow))
	}
	return window
}

// OnCongestion forgets the estimate: it must be made anew, with care.
func (b *Bandwidth) OnCongestion() { *b = Bandwidth{flat: startupRounds} }
