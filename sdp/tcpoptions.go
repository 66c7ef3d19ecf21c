package sdp

import (
	"net"
	"syscall"
	"time"
)

// isOpen reports whether Dial or Accept created c. Calls on a nil or zero Conn return
// syscall.EINVAL, as in package net.
func (c *Conn) isOpen() bool { return c != nil && c.stack != nil }

// setOption calls set with c.mu held, unless the connection is closed.
func (c *Conn) setOption(set func() error) error {
	if !c.isOpen() {
		return syscall.EINVAL
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	return c.opError("set", set())
}

// SetNoDelay implements the method of *net.TCPConn. It has no effect: no Write is delayed for
// coalescing with a later one.
func (c *Conn) SetNoDelay(bool) error { return c.setOption(func() error { return nil }) }

// SetKeepAlive enables or disables the keepalive. The period is that of Options.KeepAlive or
// SetKeepAlivePeriod, by default [DefaultKeepAlive]. A probe is sent at most an eighth later than
// the period. If the peer's adapter does not acknowledge its retransmissions for 7 s (2 s if the
// period was below 10 s when the connection was established), the connection fails with ErrReset.
func (c *Conn) SetKeepAlive(keepalive bool) error {
	return c.setOption(func() error {
		c.keepAlive.enabled = keepalive
		c.applyKeepAlive()
		return nil
	})
}

// SetKeepAlivePeriod sets the idle time before a probe. 0 means the stack's default; a negative
// value has no effect.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return c.setOption(func() error {
		c.setKeepAlivePeriod(d)
		c.applyKeepAlive()
		return nil
	})
}

// SetKeepAliveConfig combines SetKeepAlive and SetKeepAlivePeriod, with Idle as the period.
// Interval and Count have no effect: the adapter retransmits the probe like any packet.
func (c *Conn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	return c.setOption(func() error {
		c.keepAlive.enabled = config.Enable
		c.setKeepAlivePeriod(config.Idle)
		c.applyKeepAlive()
		return nil
	})
}

// keepAlive is the keepalive setting of a connection.
type keepAlive struct {
	enabled bool
	period  time.Duration
}

// newKeepAlive returns the setting for a value of Options.KeepAlive.
func newKeepAlive(d time.Duration) keepAlive {
	if d < 0 {
		return keepAlive{false, DefaultKeepAlive}
	}
	return keepAlive{true, d}
}

func (c *Conn) setKeepAlivePeriod(d time.Duration) {
	switch {
	case d == 0:
		c.keepAlive.period = newKeepAlive(c.stack.options.KeepAlive).period
	case d > 0:
		c.keepAlive.period = d
	}
}

// applyKeepAlive starts or stops the keepalive according to the setting. c.mu must be held.
func (c *Conn) applyKeepAlive() {
	if c.keepAlive.enabled {
		c.startKeepAlive(c.keepAlive.period)
	} else {
		c.startKeepAlive(-1)
	}
}
