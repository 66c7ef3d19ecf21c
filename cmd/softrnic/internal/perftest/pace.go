package perftest

// pace lets bursts of messages go at even times.
type pace struct {
	on    bool
	gap   int64 // nanoseconds from burst to burst
	burst int
	left  int   // of the burst under way
	next  int64 // when the next one may go
}

func (p *plan) newPace(size int) pace {
	if p.Rate.Limit == 0 {
		return pace{}
	}
	burst := p.Rate.Burst
	if burst == 0 {
		burst = p.txDepth
	}
	return pace{on: true, burst: burst, gap: int64(float64(burst) / p.Rate.perSecond(size) * 1e9)}
}

// may reports whether a message may go now.
func (p *pace) may(now func() int64) bool {
	if !p.on || p.left > 0 {
		return true
	}
	t := now()
	if t < p.next {
		return false
	}
	p.next, p.left = t+p.gap, p.burst
	return true
}

// posted tells that n messages went.
func (p *pace) posted(n int) {
	if p.on {
		p.left = max(0, p.left-n)
	}
}
