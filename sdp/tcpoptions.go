package sdp

import (
	"net"
	"syscall"
	"time"
)

// isOpen reports whether c is a connection: calls on nil and on the zero value return
// syscall.EINVAL, as package net's do.
func (c *Conn) isOpen() bool { return c != nil && c.stack != nil }

// setOption calls set with the lock held, unless the connection is closed.
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

// SetNoDelay implements the method of *net.TCPConn. It has no effect: no Write is delayed
// to be sent together with the next one.
func (c *Conn) SetNoDelay(bool) error { return c.setOption(func() error { return nil }) }

// SetKeepAlive turns the keepalive on or off, with the period that Options.KeepAlive or
// SetKeepAlivePeriod say, [DefaultKeepAlive] if neither does. The probe comes an eighth later
// than the period at most, and when the peer's adapter has not acknowledged its
// retransmissions, for 7 s, or 2 s where the period was below 10 s when the connection was
// made, the connection ends with ErrReset.
func (c *Conn) SetKeepAlive(keepalive bool) error {
	return c.setOption(func() error {
		c.keepAlive.enabled = keepalive
		c.applyKeepAlive()
		return nil
	})
}

// SetKeepAlivePeriod sets the time without traffic after which the peer's adapter is
// probed: 0 is the default of the stack, and a negative one changes nothing.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return c.setOption(func() error {
		c.setKeepAlivePeriod(d)
		c.applyKeepAlive()
		return nil
	})
}

// SetKeepAliveConfig sets what SetKeepAlive and SetKeepAlivePeriod do, the period from
// Idle. Interval and Count have no effect: the adapter retransmits the probe as it does
// with every packet.
func (c *Conn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	return c.setOption(func() error {
		c.keepAlive.enabled = config.Enable
		c.setKeepAlivePeriod(config.Idle)
		c.applyKeepAlive()
		return nil
	})
}

// keepAlive is the setting of a connection's keepalive.
type keepAlive struct {
	enabled bool
	period  time.Duration
}

// newKeepAlive is the setting that Options.KeepAlive says.
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

// applyKeepAlive starts or stops the keepalive as set. The lock is held.
func (c *Conn) applyKeepAlive() {
	if c.keepAlive.enabled {
		c.startKeepAlive(c.keepAlive.period)
	} else {
		c.startKeepAlive(-1)
	}
}
