package sdp

import (
	"math"
	"time"
)

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
