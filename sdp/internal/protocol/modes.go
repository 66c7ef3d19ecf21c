package protocol

import (
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// modes are how each direction's data may travel.
type modes struct {
	send, recv bsdh.Mode
	unheard    bool   // the peer has not acknowledged our last ModeChange about send
	posted     bool   // which has gone out
	changed    uint32 // as the message of this number
}

// sent takes note of a ModeChange that goes out as message seq.
func (m *modes) sent(seq uint32) {
	if m.unheard && !m.posted {
		m.posted, m.changed = true, seq
	}
}

// acknowledged takes the number of the last message that the peer has heard.
func (m *modes) acknowledged(seq uint32) {
	if m.unheard && m.posted && int32(seq-m.changed) >= 0 {
		m.unheard = false
	}
}

// newModes are those at the start: combined as the standard has it, pipelined
// for good between ends with a ring.
func newModes(d flow.Design) modes {
	if d == flow.Credit {
		return modes{send: bsdh.Combined, recv: bsdh.Combined}
	}
	return modes{send: bsdh.Pipelined, recv: bsdh.Pipelined}
}

// mayChange is the table of the standard: who asks, from where to where. Of who
// sends, from combined to buffered or pipelined, and from there back; of who
// receives, from buffered to combined.
func mayChange(bySource bool, from, to bsdh.Mode) bool {
	if !bySource {
		return from == bsdh.Buffered && to == bsdh.Combined
	}
	switch from {
	case bsdh.Combined:
		return to == bsdh.Buffered || to == bsdh.Pipelined
	case bsdh.Pipelined:
		return to == bsdh.Combined
	}
	return false
}

// ChangeMode changes the mode of what we send or, with SendHalf, asks the peer to
// send in another one, and reports whether that may be now. It may not in a
// connection with a ring, nor while memory is offered.
func (c *Core) ChangeMode(m bsdh.ModeChange) bool {
	half := &c.mode.send
	if m.SendHalf {
		half = &c.mode.recv
	}
	if c.err != nil || c.closing || c.peer.Design != flow.Credit || c.waits(bsdh.MIDModeChange) ||
		!mayChange(!m.SendHalf, *half, m.Mode) || !m.SendHalf && c.offer.live {
		return false
	}
	*half = m.Mode
	if !m.SendHalf {
		c.drain.live = false // the peer drops it, too
		c.mode.unheard, c.mode.posted = true, false
	}
	say := control{id: bsdh.MIDModeChange}
	m.Append(say.ext[:0])
	c.say(say)
	c.pump()
	return true
}

// goPipelined makes the peer take and give advertisements in our direction, as
// it wishes.
func (c *Core) goPipelined() {
	if c.mode.send == bsdh.Combined {
		c.ChangeMode(bsdh.ModeChange{Mode: bsdh.Pipelined})
	}
}

// modeChange takes a ModeChange.
func (c *Core) modeChange(ext []byte) {
	m, err := bsdh.ParseModeChange(ext)
	if err != nil {
		c.violation("%v", err)
		return
	}
	mode := &c.mode.recv
	if m.SendHalf {
		mode = &c.mode.send
	}
	switch {
	case c.peer.Design != flow.Credit:
		c.violation("ModeChange to %v in a connection by %v", m, c.peer.Design)
	case !mayChange(!m.SendHalf, *mode, m.Mode):
		c.violation("ModeChange to %v from %v", m, *mode)
	case m.Mode == bsdh.Buffered && c.avail.live:
		c.violation("ModeChange to %v while a SrcAvail is open", m)
	default:
		if *mode == bsdh.Pipelined {
			c.crossed()
			c.avail.dropped = true // the peer offers it again
			c.avail.live = c.avail.live && c.fetch.reading
		}
		*mode = m.Mode
	}
}
