package reliability

import "github.com/softrnic/softrnic/wire"

// RTT estimates the round trip from one timed packet at a time (RFC 6298,
// section 2, with Karn's rule: packets that were sent twice do not count).
type RTT struct {
	smoothed, variation int64 // nanoseconds
	psn                 wire.PSN
	sent                Time // 0: nothing is being timed
}

// OnSent starts timing the packet with this PSN unless one is timed already.
func (r *RTT) OnSent(now Time, psn wire.PSN) {
	if r.sent == 0 {
		r.psn, r.sent = psn, now
	}
}

// TimedPSN returns the timed PSN, if any.
func (r *RTT) TimedPSN() (psn wire.PSN, ok bool) { return r.psn, r.sent != 0 }

// OnAck takes the sample: the timed packet has been acknowledged.
func (r *RTT) OnAck(now Time) {
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

// StopTiming stops timing: the packet is being sent again.
func (r *RTT) StopTiming() { r.sent = 0 }

// Smoothed is the estimate in nanoseconds, 0 before the first sample.
func (r *RTT) Smoothed() int64 { return r.smoothed }

// ProbeTimeout is how long to wait for an acknowledgement before asking for it
// again, in nanoseconds: four variations above the estimate, and never so
// short that a peer whose process is not scheduled would be asked.
func (r *RTT) ProbeTimeout() int64 {
	if r.smoothed == 0 {
		return initialProbeTimeout
	}
	return max(2*r.smoothed+4*r.variation, minProbeTimeout)
}

const (
	initialProbeTimeout = 10 * Millisecond // before the first sample
	minProbeTimeout     = 2 * Millisecond
)
