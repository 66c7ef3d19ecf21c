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
	latest              int64 // the same, also afterwards
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
	r.latest = int64(now - r.sent)
	r.sent = 0
	r.Sample(r.latest)
}

// Latest returns the last round-trip time that was timed in nanoseconds, or 0.
func (r *RTT) Latest() int64 { return r.latest }

// Sample takes a sample of d nanoseconds.
func (r *RTT) Sample(d int64) {
	r.sample = max(d, 1)
	if r.smoothed == 0 {
		r.smoothed, r.variation = d, d/2
		return
	}
	r.variation += (abs(d-r.smoothed) - r.variation) / 4
	r.smoothed += (d - r.smoothed) / 8
}

func abs(d int64) int64 {
	if d < 0 {
		return -d
	}
	return d
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
func (r *RTT) ProbeTimeout() int64 { return r.probeTimeout(minProbeTimeout) }

func (r *RTT) probeTimeout(least int64) int64 {
	if r.smoothed == 0 {
		return initialProbeTimeout
	}
	return max(2*r.smoothed+4*r.variation, least)
}

const (
	initialProbeTimeout = 10 * Millisecond // before the first sample
	minProbeTimeout     = 2 * Millisecond
	earlyProbeTimeout   = 200 * Microsecond // after a loss, with selective retransmission
)
