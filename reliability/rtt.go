package reliability

import "github.com/softrnic/softrnic/wire"

// RTT estimates the round trip from one timed packet at a time (RFC 6298,
// section 2, with Karn's rule: packets that were sent twice do not count).
type RTT struct {
	smoothed, variation int64 // nanoseconds
	psn                 wire.PSN
	sent                Time // 0: nothing is being timed
}

// Sent starts timing the packet with this PSN unless one is timed already.
func (r *RTT) Sent(now Time, psn wire.PSN) {
	if r.sent == 0 {
		r.psn, r.sent = psn, now
	}
}

// Timing returns the timed PSN, if any.
func (r *RTT) Timing() (psn wire.PSN, ok bool) { return r.psn, r.sent != 0 }

// Acked takes the sample: the timed packet has been acknowledged.
func (r *RTT) Acked(now Time) {
	if r.sent == 0 {
		return
	}
	sample := int64(now - r.sent)
	r.sent = 0
	if r.smoothed == 0 {
		r.smoothed, r.variation = sample, sample/2
		return
	}
	d := sample - r.smoothed
	if d < 0 {
		d = -d
	}
	r.variation += (d - r.variation) / 4
	r.smoothed += (sample - r.smoothed) / 8
}

// Abandon stops timing: the packet is being sent again.
func (r *RTT) Abandon() { r.sent = 0 }

// Smoothed is the estimate in nanoseconds, 0 before the first sample.
func (r *RTT) Smoothed() int64 { return r.smoothed }

// ProbeAfter is how long to wait for an acknowledgement before asking for it
// again, in nanoseconds: four variations above the estimate, and never so
// short that a peer whose process is not scheduled would be asked.
func (r *RTT) ProbeAfter() int64 {
	if r.smoothed == 0 {
		return firstProbe
	}
	return max(2*r.smoothed+4*r.variation, leastProbe)
}

const (
	firstProbe = 10 * Millisecond // before the first sample
	leastProbe = 2 * Millisecond
)
