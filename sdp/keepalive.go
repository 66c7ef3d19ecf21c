package sdp

import "time"

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

// startKeepAlive starts or, if idle is not positive, stops the keepalive. c.mu must be held.
func (c *Conn) startKeepAlive(idle time.Duration) {
	if c.keepAliveTimer != nil {
		c.keepAliveTimer.Stop()
		c.keepAliveTimer = nil
	}
	if idle <= 0 || c.tornDown {
		return
	}
	c.silence = silenceDetector{interval: max(idle/keepAliveSamples, 1), completions: uint32(c.completions)}
	var timer *time.Timer
	timer = time.AfterFunc(c.silence.interval, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.keepAliveTimer != timer || c.tornDown {
			return
		}
		if c.silence.sample(uint32(c.completions)) && c.core.SendKeepAlive() {
			c.postPending()
			if !c.progress.Leading() {
				c.armCQ() // to handle the failure of the probe
			}
		}
		timer.Reset(c.silence.interval)
	})
	c.keepAliveTimer = timer
}
