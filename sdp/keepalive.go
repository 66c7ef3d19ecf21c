package sdp

import "time"

// keepAliveSamples is how many of them in a row have to find nothing new before the peer is
// asked. Nobody notes when the last word came, which would cost every one of them a
// look at the clock: so it is known to a part in so many.
const keepAliveSamples = 8

// silenceDetector finds out that a peer has been silent, by looks at equal distances.
type silenceDetector struct {
	interval    time.Duration // between looks
	completions uint32        // completions at the last look: it matters only that there are others
	idleSamples uint32        // looks since then that have found no more
}

// sample reports whether it is time to ask: a completion was the last word of the peer,
// the answer to a question as well.
func (v *silenceDetector) sample(heard uint32) (ask bool) {
	if heard != v.completions {
		v.completions, v.idleSamples = heard, 0
		return false
	}
	v.idleSamples++
	if v.idleSamples < keepAliveSamples {
		return false
	}
	v.idleSamples = 0
	return true
}

// startKeepAlive begins to ask. The lock is held.
func (c *Conn) startKeepAlive(every time.Duration) {
	if c.keepAliveTimer != nil {
		c.keepAliveTimer.Stop()
		c.keepAliveTimer = nil
	}
	if every <= 0 || c.tornDown {
		return
	}
	c.silence = silenceDetector{interval: max(every/keepAliveSamples, 1), completions: uint32(c.completions)}
	var timer *time.Timer
	timer = time.AfterFunc(c.silence.interval, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.keepAliveTimer != timer || c.tornDown {
			return
		}
		if c.silence.sample(uint32(c.completions)) && c.core.SendKeepAlive() {
			c.postPending()
			if !c.polling {
				c.armCQ() // to hear of it if there is no answer
			}
		}
		timer.Reset(c.silence.interval)
	})
	c.keepAliveTimer = timer
}
