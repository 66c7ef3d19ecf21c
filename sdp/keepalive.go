package sdp

import (
	"net"
	"time"
)

// SetKeepAlive changes Options.KeepAlive for this connection: the time without
// traffic after which the peer's adapter is asked whether it is there. Negative
// means never. What comes of no answer is ErrReset.
func (c *Conn) SetKeepAlive(d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	c.watchPeer(d)
	return nil
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
	var timer *time.Timer
	timer = time.AfterFunc(every, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.alive != timer || c.ended {
			return
		}
		if c.heard == c.asked && c.core.KeepAlive() {
			c.post()
			if !c.pumping {
				c.arm() // to hear of it if there is no answer
			}
		}
		c.asked = c.heard
		timer.Reset(every)
	})
	c.alive = timer
}
