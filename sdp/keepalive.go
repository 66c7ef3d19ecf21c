package sdp

import "time"

// looks is how many of them in a row have to find nothing new before the peer is
// asked. Nobody notes when the last word came, which would cost every one of them a
// look at the clock: so it is known to a part in so many.
const looks = 8

// vigil finds out that a peer has been silent, by looks at equal distances.
type vigil struct {
	step  time.Duration // between looks
	heard uint32        // completions at the last look: it matters only that there are others
	quiet uint32        // looks since then that have found no more
}

// look reports whether it is time to ask: a completion was the last word of the peer,
// the answer to a question as well.
func (v *vigil) look(heard uint32) (ask bool) {
	if heard != v.heard {
		v.heard, v.quiet = heard, 0
		return false
	}
	v.quiet++
	if v.quiet < looks {
		return false
	}
	v.quiet = 0
	return true
}

// watchPeer begins to ask. The lock is held.
func (c *Conn) watchPeer(every time.Duration) {
	if c.alive != nil {
		c.alive.Stop()
		c.alive = nil
	}
	if every <= 0 || c.ended {
		return
	}
	c.vigil = vigil{step: max(every/looks, 1), heard: uint32(c.heard)}
	var timer *time.Timer
	timer = time.AfterFunc(c.vigil.step, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.alive != timer || c.ended {
			return
		}
		if c.vigil.look(uint32(c.heard)) && c.core.KeepAlive() {
			c.post()
			if !c.pumping {
				c.arm() // to hear of it if there is no answer
			}
		}
		timer.Reset(c.vigil.step)
	})
	c.alive = timer
}
