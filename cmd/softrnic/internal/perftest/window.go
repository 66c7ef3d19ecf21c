package perftest

import "time"

// A clock counts nanoseconds since its creation.
type clock struct{ base time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) now() int64 { return int64(time.Since(c.base)) }

// A measureWindow divides a test of a given duration. Messages in the margins at either end do not
// count.
type measureWindow struct {
	length, margin int64
	started        bool
	from, to       int64 // when counting begins and ends
	deadline       int64
}

func (p *plan) newWindow() measureWindow {
	if p.Infinite {
		return measureWindow{length: int64(p.Duration)}
	}
	return measureWindow{length: int64(p.Duration), margin: int64(p.margin)}
}

// startWindow starts the duration at the first call.
func (p *measureWindow) startWindow(now int64) {
	if !p.started {
		*p = measureWindow{p.length, p.margin, true, now + p.margin, now + p.length - p.margin, now + p.length}
	}
}

// measuredSpan returns the measured time of a test that ends at now. In the first margin it
// returns the time since the start, and early is true.
func (p *measureWindow) measuredSpan(now int64) (from, to int64, early bool) {
	if now < p.from {
		return p.from - p.margin, now, true
	}
	return p.from, min(p.to, now), false
}

// inWindow reports whether an event at now counts.
func (p *measureWindow) inWindow(now int64) bool { return p.started && now >= p.from && now < p.to }

// expired reports whether the duration has ended.
func (p *measureWindow) expired(now int64) bool { return p.started && now >= p.deadline }

// restartWindow starts the duration again.
func (p *measureWindow) restartWindow(now int64) {
	p.started = false
	p.startWindow(now)
}
