package sdp

import (
	"math"
	"time"
)

// SetLinger says what Close does about bytes that are not with the peer yet, as
// (*net.TCPConn).SetLinger does: with sec < 0, the default, they are sent
// within Options.Linger; with 0 they are dropped and the connection is reset;
// otherwise they are sent within so many seconds. Close waits in no case.
func (c *Conn) SetLinger(sec int) error {
	return c.setOption(func() error {
		c.lingerTime = c.stack.options.Linger
		if sec >= 0 {
			c.lingerTime = time.Duration(min(sec, math.MaxInt32)) * time.Second
		}
		return nil
	})
}
