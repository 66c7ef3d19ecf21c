package protocol

import (
	"github.com/softrnic/softrnic/wire/bsdh"
)

// resizeAsked takes a ChRcvBuf: the peer would like our receive buffers to have
// another size. Ours stay as they are, which is what the answer says.
func (c *Core) resizeAsked(uint32) {
	m := control{id: bsdh.MIDChRcvBufAck}
	bsdh.ChRcvBuf{Size: uint32(c.cfg.slotBytes())}.Append(m.ext[:0])
	c.say(m)
}

// resized takes a ChRcvBufAck.
func (c *Core) resized(uint32) {
	c.violation("ChRcvBufAck, and no other size was asked for")
}
