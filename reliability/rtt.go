package reliability

import "github.com/softrnic/softrnic/wire"

// An RTT estimates the round-trip time from one timed packet at a time (RFC
// 6298, section 2, with Karn's algorithm: retransmitted packets are not
// sampled).
type RTT struct {
	smoothed, variation int64 // nanoseconds
	psn                 wire.PSN
	sent                Time  // 0: no packet is timed
	sample              int64 // last sample in nanoseconds, 0 if TakeSample has returned it
}

// OnSent starts timing the packet with this PSN, unless another packet is being
// timed.
func (r *RTT) OnSent(now Time, psn wire.PSN) {
	if r.sent == 0 {
		r.psn, r.sent = psn, now
	}
}

// TimedPSN returns the PSN of the timed packet, if any.
func (r *RTT) TimedPSN() (psn wire.PSN, ok bool) { return r.psn, r.sent != 0 }

// OnAck takes a sample: the timed packet was acknowledged at now.
func (r *RTT) OnAck(now Time) {
	if r.sent == 0 {
		return
	}
	sample := int64(now - r.sent)
	r.sent = 0
	r.sample = max(sample, 1)
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

// StopTiming discards the timed packet, because it is being retransmitted.
func (r *RTT) StopTiming() { r.sent = 0 }

// Smoothed returns the smoothed round-trip time in nanoseconds, 0 before the
// first sample.
func (r *RTT) Smoothed() int64 { return r.smoothed }

// TakeSample returns the last sample in nanoseconds, and 0 until the next one is
// taken.
func (r *RTT) TakeSample() int64 {
	sample := r.sample
	r.sample = 0
	return sample
}

// ProbeTimeout returns the time in nanoseconds after which an unacknowledged
// packet is probed: twice the estimate plus four variations, and at least
// minProbeTimeout, so that a peer whose process is not scheduled is not probed.
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
