package perftest

// A pacer spaces bursts of messages evenly.
type pacer struct {
	enabled   bool
	interval  int64 // nanoseconds from burst to burst
	burst     int
	burstLeft int   // messages left in the current burst
	nextBurst int64 // earliest time of the next burst
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

// allow reports whether a message may be posted now.
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

// consume counts n posted messages.
func (p *pacer) consume(n int) {
	if p.enabled {
		p.burstLeft = max(0, p.burstLeft-n)
	}
}
