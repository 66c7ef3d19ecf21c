package congestion

import "github.com/softrnic/softrnic/reliability"

// Parameters of DCQCN. The paper (Zhu et al., SIGCOMM 2015) has timers of 55 us for round trips of
// some microseconds at 40 Gbit/s. Here a period is at least a round trip, and the time of some
// packets at the current rate: a slow flow learns of marks only as often as it sends.
const (
	cnpInterval   = 50 * reliability.Microsecond // of the notification point, paper N
	minPeriod     = 55 * reliability.Microsecond // of alpha and of increases, paper K and T
	periodPackets = 4
	alphaGain     = 1.0 / 16                      // paper g: 1/256 for periods of 55 us
	initialAlpha  = 0.5                           // paper: 1, which halves the rate with the first notification
	recoverySteps = 5                             // paper F
	minIncrease   = 300 * reliability.Microsecond // between increases by time
	additiveSlope = 5e9 / 8                       // bytes a second, each second; paper: R_AI of 40 Mbit/s each T
	hyperSlope    = 50e9 / 8                      // bytes a second, each second
	increaseBytes = 10 << 20                      // of the byte counter, paper B
	minRate       = 1e6 / 8                       // bytes a second: no notification, forged or not, stops a flow
	usedShare     = 1.5                           // of the measured rate that a flow may return to: one that sent less has not tested its limit
	maxCut        = 0.5                           // of the rate with one notification
	maxPeriods    = 1000                          // without a notification after which the limit is lifted
)

// A dcqcn is the reaction point of DCQCN: it reduces the rate with each notification by a share
// that grows with the frequency of notifications, and raises it to the rate before, then beyond
// it. Before the first notification, and long after the last one, it has no limit: the rate of the
// interface is not known to a process.
type dcqcn struct {
	packet float64

	limited bool
	rate    float64 // current rate, bytes a second (R_C)
	target  float64 // rate before the last reduction, and beyond (R_T)
	alpha   float64 // share of periods with notifications

	periodStart reliability.Time // of alpha
	marked      bool             // a notification in this period
	raisedAt    reliability.Time // last increase by time
	stage       int              // increases by time since the last notification
	byteStage   int              // increases by bytes
	bytes       float64
	reducedAt   reliability.Time

	rtt  int64 // smoothed, nanoseconds; 0 at a responder
	sent sendMeter
}

// period returns the length of a period in nanoseconds.
func (d *dcqcn) period() reliability.Time {
	p := max(minPeriod, reliability.Time(d.rtt))
	if d.rate > 0 {
		p = max(p, reliability.Time(periodPackets*d.packet/d.rate*1e9))
	}
	return p
}

// onSent implements rule.
func (d *dcqcn) onSent(now reliability.Time, bytes int) {
	d.sent.add(now, bytes, d.period())
	if !d.limited {
		return
	}
	d.advance(now)
	if d.bytes += float64(bytes); d.bytes >= increaseBytes {
		d.bytes = 0
		d.byteStage++
		d.increase(increaseBytes / d.rate)
	}
}

// onAck implements rule.
func (d *dcqcn) onAck(now reliability.Time, a Ack) {
	if a.RTT > 0 {
		d.rtt = smooth(d.rtt, a.RTT)
	}
	if d.limited {
		d.advance(now)
	}
}

// smooth returns the moving average of round trips (RFC 6298).
func smooth(average, sample int64) int64 {
	if average == 0 {
		return sample
	}
	return average + (sample-average)/8
}

// onMark implements rule. It reduces the rate at most once in a round trip: later notifications are
// of packets sent before the reduction.
func (d *dcqcn) onMark(now reliability.Time) (reduced bool) {
	if !d.limited {
		rate := d.sent.rate(now)
		if rate == 0 {
			return false // nothing was sent that could have been marked
		}
		*d = dcqcn{packet: d.packet, limited: true, rate: max(rate, minRate), alpha: initialAlpha, periodStart: now, raisedAt: now, rtt: d.rtt, sent: d.sent}
		d.target = d.rate
	} else {
		d.advance(now)
	}
	d.marked = true
	if d.reducedAt != 0 && now-d.reducedAt < max(cnpInterval, reliability.Time(d.rtt)) {
		return false
	}
	d.reducedAt = now
	d.rate = min(d.rate, max(usedShare*d.sent.rate(now), minRate))
	d.target = d.rate
	d.rate = max(d.rate*(1-min(d.alpha/2, maxCut)), minRate)
	d.raisedAt, d.stage, d.byteStage, d.bytes = now, 0, 0, 0
	return true
}

// onLoss implements rule: links with DCQCN are expected to lose nothing. A loss counts as a
// notification.
func (d *dcqcn) onLoss(now reliability.Time) (reduced bool) { return d.limited && d.onMark(now) }

// onTimeout implements rule.
func (d *dcqcn) onTimeout(now reliability.Time) {
	if d.limited {
		d.onMark(now)
		d.rate = max(d.rate/2, minRate)
	}
}

// advance ends the periods that have passed by now.
func (d *dcqcn) advance(now reliability.Time) {
	for n := 0; n < maxPeriods; n++ {
		p := d.period()
		if now-d.periodStart < p {
			break
		}
		d.periodStart += p
		d.alpha *= 1 - alphaGain
		if d.marked {
			d.alpha += alphaGain
			d.marked = false
		}
	}
	t := max(minIncrease, reliability.Time(d.rtt))
	for d.limited && now-d.raisedAt >= t {
		d.raisedAt += t
		d.stage++
		d.increase(float64(t) / 1e9)
		d.limited = d.stage < maxPeriods
	}
}

// increase raises the rate: half of the way back to the target at first, then the target too. The
// increase of the target is in proportion to the seconds since the last one, so that flows with
// different round trips are equal.
func (d *dcqcn) increase(seconds float64) {
	switch low, high := min(d.stage, d.byteStage), max(d.stage, d.byteStage); {
	case high <= recoverySteps:
	case low > recoverySteps:
		d.target += float64(low-recoverySteps) * hyperSlope * seconds
	default:
		d.target += additiveSlope * seconds
	}
	d.rate = (d.rate + d.target) / 2
}

// limits implements rule.
func (d *dcqcn) limits(now reliability.Time) (window, rate float64) {
	if d.limited {
		d.advance(now)
	}
	if !d.limited {
		return 0, 0
	}
	return 0, d.rate
}

// A sendMeter measures the rate of a flow that has no limit yet.
type sendMeter struct {
	start, last reliability.Time
	bytes       float64
	lastRate    float64 // of the interval before
}

// add records a packet, with intervals of at least the given length.
func (m *sendMeter) add(now reliability.Time, bytes int, interval reliability.Time) {
	if m.start == 0 {
		m.start = now
	}
	if now-m.start >= interval {
		m.lastRate = m.bytes / float64(now-m.start) * 1e9
		m.start, m.bytes = now, 0
	}
	m.bytes += float64(bytes)
	m.last = now
}

// meterMemory is the time in nanoseconds for which a packet may draw a notification.
const meterMemory = 500 * reliability.Millisecond

// rate returns the measured rate in bytes a second, 0 if nothing was sent recently.
func (m *sendMeter) rate(now reliability.Time) float64 {
	if m.last == 0 || now-m.last > meterMemory {
		return 0
	}
	current := m.bytes / float64(max(now-m.start, minPeriod)) * 1e9
	return max(current, m.lastRate)
}
