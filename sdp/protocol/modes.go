package protocol

import (
	"github.com/softrnic/softrnic/sdp/flow"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// modes are how each direction's data may travel.
type modes struct {
	send, recv bsdh.Mode
}

// newModes are those at the start: combined as the standard has it, pipelined
// for good between ends with a ring.
func newModes(d flow.Design) modes {
	if d == flow.Credit {
		return modes{bsdh.Combined, bsdh.Combined}
	}
	return modes{bsdh.Pipelined, bsdh.Pipelined}
}

// goPipelined asks the peer to take and give advertisements in our direction.
func (c *Core) goPipelined() {
	if c.mode.send != bsdh.Combined || c.offer.live {
		return
	}
	c.mode.send = bsdh.Pipelined
	m := control{id: bsdh.MIDModeChange, hold: true}
	bsdh.ModeChange{Mode: bsdh.Pipelined}.Append(m.ext[:0])
	c.say(m)
}

// modeChange takes a ModeChange: who asks, from where to where, is in the
// table of the standard.
func (c *Core) modeChange(ext []byte) {
	m, err := bsdh.ParseModeChange(ext)
	if err != nil {
		c.violation("%v", err)
		return
	}
	if c.peer.Design != flow.Credit {
		c.violation("ModeChange to %v in a connection by %v", m, c.peer.Design)
		return
	}
	from := &c.mode.recv
	if m.SendHalf {
		from = &c.mode.send
	}
	switch {
	case m.SendHalf && *from == bsdh.Buffered && m.Mode == bsdh.Combined:
	case !m.SendHalf && *from == bsdh.Combined && m.Mode == bsdh.Buffered && !c.avail.live:
	case !m.SendHalf && *from == bsdh.Combined && m.Mode == bsdh.Pipelined:
	case !m.SendHalf && *from == bsdh.Pipelined && m.Mode == bsdh.Combined && !c.sink.live:
		c.avail.live = c.avail.live && c.avail.reading // the peer offers it again
	default:
		c.violation("ModeChange to %v from %v", m, *from)
		return
	}
	*from = m.Mode
}
