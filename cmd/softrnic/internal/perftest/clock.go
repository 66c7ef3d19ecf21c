package perftest

import "time"

// clock counts nanoseconds.
type clock struct{ base time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) now() int64 { return int64(time.Since(c.base)) }

// phases divide a test of a given duration: nothing counts in the margins at
// either end.
type phases struct {
	length, margin int64
	begun          bool
	from, to       int64 // when counting begins and ends
	end            int64
}

func (p *plan) phases() phases {
	if p.Infinite {
		return phases{length: int64(p.Duration)}
	}
	return phases{length: int64(p.Duration), margin: int64(p.margin)}
}

// begin starts the time, once.
func (p *phases) begin(now int64) {
	if !p.begun {
		*p = phases{p.length, p.margin, true, now + p.margin, now + p.length - p.margin, now + p.length}
	}
}

// measured returns the time that a test which ends at now has measured. One that ends in
// the first margin has nothing better than that, and early is true.
func (p *phases) measured(now int64) (from, to int64, early bool) {
	if now < p.from {
		return p.from - p.margin, now, true
	}
	return p.from, min(p.to, now), false
}

// counts reports whether what happens now counts.
func (p *phases) counts(now int64) bool { return p.begun && now >= p.from && now < p.to }

// over reports whether the test is.
func (p *phases) over(now int64) bool { return p.begun && now >= p.end }

// again starts over.
func (p *phases) again(now int64) {
	p.begun = false
	p.begin(now)
}
