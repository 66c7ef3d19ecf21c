package congestion

import (
	"math"

	"github.com/softrnic/softrnic/reliability"
)

// Parameters of the delay-based rule. Names and values of Swift (Kumar et al., SIGCOMM 2020) are
// given where they have counterparts.
const (
	minTarget      = 500 * reliability.Microsecond  // of the round trip; Swift: 25 us and more for each hop, with time stamps of the adapter
	queueTarget    = 250 * reliability.Microsecond  // accepted queueing delay at least
	targetShare    = 4                              // accepted queueing delay is at least this part of the base
	decreaseGain   = 0.8                            // beta
	maxDecrease    = 0.5                            // max_mdf
	scaleRange     = 2000 * reliability.Microsecond // fs_range: added to the target of small windows
	scaleMin       = 0.1                            // fs_min_cwnd, packets
	scaleMax       = 100                            // fs_max_cwnd, packets
	minWindow      = 1.0 / 16                       // packets; Swift: 0.001
	minDelayRate   = 4e6 / 8                        // bytes a second: on a busy host late processes look like a queue
	initialBytes   = 4352                           // initial window, at least a packet
	lossDecrease   = 0.7                            // of the window that is left after a loss, as in RFC 9438
	quietShare     = 4                              // a queue below this part of queueTarget is none: there losses are no congestion
	lossTolerance  = 0.1                            // share of packets that may be lost without a queue
	slowPackets    = 4                              // packets of a window below which a flow is one of many: it grows by less than a packet
	growthRounds   = 4                              // round trips with a short queue after which the window grows by an eighth each
	drainWindow    = 0.5                            // packets in flight while a flow lets the queue drain
	drainShare     = 1.0 / 8                        // of the window then at most
	drainSamples   = 3                              // samples of the round trip meanwhile
	probeInterval  = 200 * reliability.Millisecond  // after which a flow that has not seen the base again lets the queue drain
	baseTolerance  = 16                             // a sample above the base by at most this part sees it
	baseMemory     = 10_000 * reliability.Millisecond
	filterSamples  = 2    // the smallest of them counts: a process may be late
	steadySamples  = 2    // before a flow with a round trip above minTarget, perhaps due to a queue, begins slow start
	sampledPackets = 1024 // memory of the share of lost packets
)

// A delayRule adapts the window to the round-trip time: additive increase while it is below a
// target, and otherwise a decrease in proportion to the excess, once in a round trip. The target is
// higher for small windows, which makes shares converge and leaves space for a packet of each of
// many flows.
//
// The target depends on the base, the round trip without a queue. A flow that begins beside others
// has never seen it. So after slow start, and later from time to time, a flow that keeps a queue
// lets it drain.
type delayRule struct {
	packet float64
	limit  float64

	window    float64
	slowStart bool
	base      baseRTT
	rtt       int64                    // smoothed
	samples   int                      // number of samples, at most steadySamples
	recent    [filterSamples - 1]int64 // samples before, the last one first
	low       int64                    // the smallest one of the last filterSamples
	lowRounds int                      // samples in a row with a short queue
	reducedAt reliability.Time

	draining int              // samples left until the window returns to resume
	resume   float64          // window after draining
	baseSeen reliability.Time // last sample near the base

	acked, lost float64 // packets, of the recent past

	buffer bufferFill
}

func newDelayRule(c Config) *delayRule {
	d := &delayRule{packet: float64(c.Packet), limit: float64(c.MaxWindow), slowStart: true}
	d.window = min(max(initialBytes, d.packet), d.limit)
	return d
}

// onSent implements rule.
func (d *delayRule) onSent(reliability.Time, int) {}

// target returns the accepted round-trip time in nanoseconds.
func (d *delayRule) target() int64 {
	const a = scaleRange / (1/0.31622776601683794 - 1/10.0) // square roots of scaleMin and scaleMax
	w := min(max(d.window/d.packet, scaleMin), scaleMax)
	return d.baseTarget() + int64(a/math.Sqrt(w)-a/10)
}

// baseTarget returns the target of a large window in nanoseconds. It ends slow start.
func (d *delayRule) baseTarget() int64 {
	base := d.base.value()
	return max(minTarget, base+max(queueTarget, base/targetShare))
}

// queueDelay returns the current queueing delay in nanoseconds.
func (d *delayRule) queueDelay() int64 { return d.low - d.base.value() }

// onAck implements rule.
func (d *delayRule) onAck(now reliability.Time, a Ack) {
	d.acked += float64(a.Bytes) / d.packet
	if d.acked > sampledPackets {
		d.acked, d.lost = d.acked/2, d.lost/2
	}
	if a.RTT > 0 {
		d.takeSample(now, a.RTT)
	}
	if d.rtt == 0 || d.draining > 0 || float64(a.InFlight) < d.window/2 {
		return // the window did not limit the flow
	}
	bytes := float64(a.Bytes)
	switch {
	case d.buffer.competing:
		d.window += d.buffer.growth(now, d, bytes)
	case d.low > d.target():
	case d.slowStart && d.samples < steadySamples && d.rtt > minTarget:
	case d.slowStart:
		d.window += bytes
	case d.lowRounds > growthRounds:
		d.window += max(bytes/8, d.packet*bytes/d.window)
	default:
		d.window += min(max(d.window/slowPackets, d.packet/slowPackets), d.packet) * min(bytes/d.window, 1)
	}
	d.window = min(d.window, d.limit)
}

// takeSample handles a sample of the round-trip time.
func (d *delayRule) takeSample(now reliability.Time, rtt int64) {
	d.base.add(now, rtt)
	d.rtt = smooth(d.rtt, rtt)
	d.samples = min(d.samples+1, steadySamples)
	d.low = rtt
	for _, r := range d.recent {
		if r > 0 {
			d.low = min(d.low, r)
		}
	}
	last := d.recent[0]
	copy(d.recent[1:], d.recent[:])
	d.recent[0] = rtt
	if base := d.base.value(); rtt <= base+base/baseTolerance {
		d.baseSeen = now
	}
	if d.draining > 0 {
		if d.draining--; d.draining == 0 {
			d.window, d.baseSeen, d.reducedAt = d.resume, now, now
		}
		return
	}
	target := d.target()
	if d.queueDelay() < queueTarget/quietShare {
		d.lowRounds++
	} else {
		d.lowRounds = 0
	}
	d.buffer.takeSample(now, d, target)
	if d.buffer.competing {
		return
	}
	switch {
	case now-d.baseSeen > probeInterval && d.window > d.packet:
		d.startDraining(d.window)
	case d.slowStart && min(rtt, last) > d.baseTarget():
		d.slowStart = false
		d.startDraining(d.window / 2 * min(1, float64(target)/float64(min(rtt, last))))
	case d.low <= target:
	case d.mayReduce(now):
		share := decreaseGain * float64(d.low-target) / float64(d.low)
		d.reduce(now, 1-min(share, maxDecrease))
	}
}

// floor returns the least window in bytes.
func (d *delayRule) floor() float64 {
	return min(max(d.packet*minWindow, minDelayRate*float64(d.rtt)/1e9), d.packet)
}

// startDraining lets the queue drain for drainSamples.
func (d *delayRule) startDraining(resume float64) {
	d.resume, d.draining = max(resume, d.floor()), drainSamples
	clear(d.recent[:])
	d.window = max(min(d.window*drainShare, d.packet*drainWindow), d.floor())
}

// mayReduce reports whether a round trip has passed since the last decrease.
func (d *delayRule) mayReduce(now reliability.Time) bool {
	return d.draining == 0 && (d.reducedAt == 0 || int64(now-d.reducedAt) >= d.rtt)
}

// reduce multiplies the window.
func (d *delayRule) reduce(now reliability.Time, share float64) {
	d.reducedAt = now
	d.lowRounds = 0
	d.window = max(d.window*share, d.floor())
}

// onMark implements rule: notifications end slow start, and the other rule reduces the rate.
func (d *delayRule) onMark(reliability.Time) (reduced bool) {
	d.slowStart, d.lowRounds = false, 0
	return false
}

// onLoss implements rule. Where round trips show no queue, some loss is not due to congestion.
func (d *delayRule) onLoss(now reliability.Time) (reduced bool) {
	d.lost++
	if !d.mayReduce(now) {
		return false
	}
	if d.rtt > 0 && d.queueDelay() < queueTarget/quietShare && d.lost < max(lossTolerance*d.acked, 8) {
		return false
	}
	d.slowStart = false
	share := lossDecrease
	if d.buffer.competing {
		share = fillDecrease
	}
	d.buffer.onLoss(now, d, share)
	d.reduce(now, share)
	return true
}

// onTimeout implements rule.
func (d *delayRule) onTimeout(now reliability.Time) {
	d.slowStart, d.draining = false, 0
	d.buffer.onLoss(now, d, fillDecrease)
	d.reducedAt, d.lowRounds = now, 0
	d.window = min(d.window, d.packet)
}

// limits implements rule. The rate spreads the window over a round trip, with a margin above one
// packet so that the window is the limit.
func (d *delayRule) limits(reliability.Time) (window, rate float64) {
	if d.rtt == 0 {
		return d.window, 0
	}
	gain := 1.25
	switch {
	case d.slowStart:
		gain = 2
	case d.window < 2*d.packet:
		gain = 1
	}
	return d.window, gain * d.window / float64(d.rtt) * 1e9
}

// A baseRTT is the minimum of the round trips of the last one or two times baseMemory.
type baseRTT struct {
	current, before int64
	since           reliability.Time
}

// add records a sample.
func (b *baseRTT) add(now reliability.Time, rtt int64) {
	if b.since == 0 || now-b.since > baseMemory {
		b.before, b.current, b.since = b.current, rtt, now
	}
	b.current = min(b.current, rtt)
}

// value returns the minimum, 0 before the first sample.
func (b *baseRTT) value() int64 {
	if b.before > 0 {
		return min(b.before, b.current)
	}
	return b.current
}
