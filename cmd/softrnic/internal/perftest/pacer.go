package perftest

// pacer lets bursts of messages go at even times.
type pacer struct {
	enabled   bool
	interval  int64 // nanoseconds from burst to burst
	burst     int
	burstLeft int   // of the burst under way
	nextBurst int64 // when the next one may go
}

func (p *plan) newPacer(size int) pacer {
	if p.Rate.Limit == 0 {
		return pacer{}
	}
	burst := p.Rate.Burst
	if burst == 0 {
		burst = p.txDepth
	}
	return pacer{enabled: true, burst: burst, interval: int64(float64(burst) / p.Rate.messagesPerSecond(size) * 1e9)}
}

// allow reports whether a message may go now.
func (p *pacer) allow(now func() int64) bool {
	if !p.enabled || p.burstLeft > 0 {
		return true
	}
	t := now()
	if t < p.nextBurst {
		return false
	}
	p.nextBurst, p.burstLeft = t+p.interval, p.burst
	return true
}

// consume tells that n messages went.
func (p *pacer) consume(n int) {
	if p.enabled {
		p.burstLeft = max(0, p.burstLeft-n)
	}
}
