package sdp

import (
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// keepAlive is the keepalive setting of a connection.
type keepAlive struct {
	enabled bool
	period  time.Duration
}

// shortKeepAlive is the keepalive period below which a connection uses a short retransmission
// timeout, to detect a failed peer soon.
const shortKeepAlive = 10 * time.Second

// connectOptions returns the queue pair options of a connection with keepalive setting k. RNR
// retries are unlimited and frequent, because a peer without receives may be computing. A peer
// whose process is not scheduled on a busy machine has 7.2 s until it is considered failed, or
// 1.8 s with a short keepalive period (docs/reliability.md).
func connectOptions(k keepAlive) verbs.ConnectOptions {
	o := verbs.ConnectOptions{
		AckTimeout: verbs.AckTimeout(16), RNRRetries: verbs.RetryForever, RNRDelay: 10 * time.Microsecond,
		MaxRdAtomic: 4, MaxDestRdAtomic: 4,
	}
	if k.enabled && k.period < shortKeepAlive {
		o.AckTimeout = verbs.AckTimeout(14)
	}
	return o
}

// keepAliveSamples is the number of consecutive samples without a completion before a probe is
// sent. Sampling avoids reading the clock for every completion; the idle time is known to within
// one interval.
const keepAliveSamples = 8

// A silenceDetector detects an idle peer by sampling the completion count at fixed intervals.
type silenceDetector struct {
	interval    time.Duration // time between samples
	completions uint32        // count at the last sample, modulo 2^32
	idleSamples uint32        // consecutive samples without a new completion
}

// sample records the completion count and reports whether a probe is due. The completion of a
// probe counts, too.
func (d *silenceDetector) sample(completions uint32) (probeDue bool) {
	if completions != d.completions {
		d.completions, d.idleSamples = completions, 0
		return false
	}
	d.idleSamples++
	if d.idleSamples < keepAliveSamples {
		return false
	}
	d.idleSamples = 0
	return true
}

// sampleGrid is the number of points in an interval at which samples are taken. The connections of
// a process share the points, so that a thousand idle ones do not wake it at as many times.
const sampleGrid = 8

// untilSample returns the time from now until the next sample: the last point within an interval.
func (d *silenceDetector) untilSample(now time.Time) time.Duration {
	grid := max(d.interval/sampleGrid, 1)
	return d.interval - time.Duration(now.Add(d.interval).UnixNano())%grid
}
