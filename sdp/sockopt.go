package sdp

import (
	"fmt"
	"math"
	"net"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/internal/bsdh"
)

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

// SetLinger sets how Close treats unsent data, as (*net.TCPConn).SetLinger does: with sec < 0,
// the default, it is sent within Options.Linger; with 0 it is discarded and the connection is
// reset; otherwise it is sent within sec seconds. Close does not block in any case.
func (c *Conn) SetLinger(sec int) error {
	return c.setOption(func() error {
		c.lingerTime = c.stack.options.Linger
		if sec >= 0 {
			c.lingerTime = time.Duration(min(sec, math.MaxInt32)) * time.Second
		}
		return nil
	})
}

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
	timer = time.AfterFunc(c.silence.untilSample(time.Now()), func() {
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
		timer.Reset(c.silence.untilSample(time.Now()))
	})
	c.keepAliveTimer = timer
}

// SetReadBuffer grows the receive buffer to at least bytes. With NIC and RDMA flow control the
// peer continues in a longer ring, while data in the old one is read. With Credit only the peer
// can request larger buffers. It returns syscall.EINVAL if the size is invalid or the mode does
// not allow it.
func (c *Conn) SetReadBuffer(bytes int) error { return c.setBuffer(c.growRing, bytes) }

// SetWriteBuffer requests receive buffers for messages of bytes bytes from the peer (ChRcvBuf),
// which the peer may grant. It applies to Credit only, where the buffer size bounds the message
// size, and up to the size of the local buffers. It returns syscall.EINVAL if the size is invalid
// or the mode does not allow it.
func (c *Conn) SetWriteBuffer(bytes int) error { return c.setBuffer(c.growMessages, bytes) }

// setBuffer calls grow with c.mu held, after validating bytes.
func (c *Conn) setBuffer(grow func(bytes int) error, bytes int) error {
	if !c.isOpen() {
		return syscall.EINVAL
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterCall()
	defer c.exitCall()
	if c.closed {
		return c.socketError(net.ErrClosed)
	}
	c.progress.Poll()
	err := c.core.Err()
	if most := bsdh.MaxRing - 1 - int64(c.cfg.RingSlack()); err == nil && (bytes < 0 || int64(bytes) > most) {
		err = fmt.Errorf("%w: buffer of %d bytes, want 0 to %d", errInvalid, bytes, most)
	}
	if err == nil {
		err = grow(bytes)
		c.postPending()
	}
	return c.socketError(err)
}

// PeerBuffer returns the current maximum length of a message with Credit in bytes.
func (c *Conn) PeerBuffer() int {
	if !c.isOpen() {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress.Poll()
	return c.core.PeerBufferBytes()
}
