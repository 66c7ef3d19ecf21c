package perftest

import "time"

// clock counts nanoseconds.
type clock struct{ base time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) now() int64 { return int64(time.Since(c.base)) }

// measureWindow divide a test of a given duration: nothing counts in the margins at
// either end.
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

// startWindow starts the time, once.
func (p *measureWindow) startWindow(now int64) {
	if !p.started {
		*p = measureWindow{p.length, p.margin, true, now + p.margin, now + p.length - p.margin, now + p.length}
	}
}

// measuredSpan returns the time that a test which ends at now has measured. One that ends in
// the first margin has nothing better than that, and early is true.
func (p *measureWindow) measuredSpan(now int64) (from, to int64, early bool) {
	if now < p.from {
		return p.from - p.margin, now, true
	}
	return p.from, min(p.to, now), false
}

// inWindow reports whether what happens now counts.
func (p *measureWindow) inWindow(now int64) bool { return p.started && now >= p.from && now < p.to }

// expired reports whether the test is.
func (p *measureWindow) expired(now int64) bool { return p.started && now >= p.deadline }

// restartWindow starts over.
func (p *measureWindow) restartWindow(now int64) {
	p.started = false
	p.startWindow(now)
}
