package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
)

// ChangeMode changes the mode of the local direction or, with SendHalf, requests a change of the
// peer's. It returns false if the change is not allowed now: with a ring, while memory is
// offered, or by the table of mode changes.
func (c *Core) ChangeMode(m bsdh.ModeChange) bool {
	half := &c.mode.send
	if m.SendHalf {
		half = &c.mode.recv
	}
	if c.err != nil || c.closing || c.peer.FlowControl != flow.Credit || c.isQueued(bsdh.MIDModeChange) ||
		!modeChangeAllowed(!m.SendHalf, *half, m.Mode) || !m.SendHalf && c.offer.live {
		return false
	}
	*half = m.Mode
	if !m.SendHalf {
		c.peerSink.live = false // the peer drops it, too
		c.mode.unacked, c.mode.posted = true, false
	}
	message := control{id: bsdh.MIDModeChange}
	m.Append(message.ext[:0])
	c.queueControl(message)
	c.buildRequests()
	return true
}

// requestPipelined changes the local direction to pipelined mode, in which both sides may
// advertise memory.
func (c *Core) requestPipelined() {
	if c.mode.send == bsdh.Combined {
		c.ChangeMode(bsdh.ModeChange{Mode: bsdh.Pipelined})
	}
}

// handleModeChange handles a ModeChange.
func (c *Core) handleModeChange(ext []byte) {
	m, err := bsdh.ParseExtended[bsdh.ModeChange](ext)
	if err != nil {
		c.violation("%v", err)
		return
	}
	mode := &c.mode.recv
	if m.SendHalf {
		mode = &c.mode.send
	}
	switch {
	case c.peer.FlowControl != flow.Credit:
		c.violation("ModeChange to %v with flow control %v", m, c.peer.FlowControl)
	case !modeChangeAllowed(!m.SendHalf, *mode, m.Mode):
		c.violation("ModeChange to %v from %v", m, *mode)
	case m.Mode == bsdh.Buffered && c.peerSource.live:
		c.violation("ModeChange to %v while a SrcAvail is outstanding", m)
	default:
		if *mode == bsdh.Pipelined {
			c.endCrossedSink()
			c.peerSource.dropped = true // the peer will offer it again
			c.peerSource.live = c.peerSource.live && c.sourceRead.outstanding
		}
		*mode = m.Mode
	}
}
