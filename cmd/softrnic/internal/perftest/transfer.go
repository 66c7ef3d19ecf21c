package perftest

import "time"

// A transfer has the figures of a bandwidth run for a report.
type transfer struct {
	size     int64
	messages int64
	peakTime float64 // least nanoseconds a message; 0 is unknown
	from, to int64   // nanoseconds
}

// totalTransfer returns the figures of a complete run.
func (t *bandwidthRun) totalTransfer() transfer {
	if t.timed {
		return transfer{int64(t.size), t.countedMessages, 0, t.from, t.to}
	}
	f := transfer{int64(t.size), t.total - t.lost, 0, t.first, t.last}
	if t.posted != nil {
		f.peakTime = peakMessageTime(t.posted, t.done)
		f.from = t.posted[0]
	}
	return f
}

// partialTransfer returns the figures of an interrupted run. Within the first margin of -D it
// counts the messages so far.
func (t *bandwidthRun) partialTransfer() transfer {
	messages := t.completed
	if !t.sends {
		messages = t.received
	}
	if !t.timed {
		return transfer{int64(t.size), messages, 0, t.first, t.last}
	}
	from, to, early := t.measuredSpan(t.now())
	if !early {
		messages = t.countedMessages
	}
	return transfer{int64(t.size), messages, 0, from, to}
}

// A BandwidthRow is a row of a bandwidth test's report.
type BandwidthRow struct {
	Size    int64
	Iters   int64
	Peak    float64 // MiB/s or Gbit/s; 0 if not looked for
	Average float64 // MiB/s or Gbit/s
	MsgRate float64 // million a second
	CPU     *float64
}

// bandwidthRow returns the row of a run.
func (p *plan) bandwidthRow(f transfer) BandwidthRow {
	unit := float64(1 << 20)
	if p.Gbits {
		unit = 1e9 / 8
	}
	r := BandwidthRow{Size: f.size, Iters: f.messages}
	if seconds := float64(f.to-f.from) / 1e9; seconds > 0 {
		r.Average = float64(f.size*f.messages) / seconds / unit
		r.MsgRate = float64(f.messages) / seconds / 1e6
	}
	if f.peakTime > 0 {
		r.Peak = float64(f.size) / (f.peakTime / 1e9) / unit
	}
	return r
}

// plus returns the sum of both directions.
func (r BandwidthRow) plus(o BandwidthRow) BandwidthRow {
	r.Peak += o.Peak
	r.Average += o.Average
	r.MsgRate += o.MsgRate
	return r
}

// peakMessageTime returns the least time a message over all stretches from the post of one to the
// completion of another: the least (done[j]-posted[i])/(j-i+1) with i <= j. done is 0 for
// unsignaled messages.
func peakMessageTime(posted, done []int64) float64 {
	best := -1.0
	for j := len(done) - 1; j >= 0; j-- {
		if done[j] != 0 {
			best = float64(done[j]-posted[0]) / float64(j+1)
			break
		}
	}
	// Dinkelbach's method: the least value l makes the least of done[j]-posted[i]-l*(j-i+1)
	// zero, and a value above it makes that negative at a stretch with a lesser value, from
	// which the next pass starts. A few passes suffice.
	for best > 0 {
		// start is the i up to j that gains most: posted[i]-best*i.
		gain, start := float64(posted[0]), 0
		least, value := 0.0, best
		for j := range done {
			if g := float64(posted[j]) - best*float64(j); g > gain {
				gain, start = g, j
			}
			if done[j] == 0 {
				continue
			}
			if loss := float64(done[j]) - best*float64(j+1) - gain; loss < least {
				least, value = loss, float64(done[j]-posted[start])/float64(j-start+1)
			}
		}
		if value >= best {
			break
		}
		best = value
	}
	return max(best, 0)
}

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
