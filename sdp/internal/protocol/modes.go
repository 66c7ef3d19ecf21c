package protocol

import (
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// modes are how each direction's data may travel.
type modes struct {
	send, recv bsdh.Mode
	unacked    bool   // the peer has not acknowledged our last ModeChange about send
	posted     bool   // which has gone out
	changeSeq  uint32 // as the message of this number
}

// recordModeChange takes note of a ModeChange that goes out as message seq.
func (m *modes) recordModeChange(seq uint32) {
	if m.unacked && !m.posted {
		m.posted, m.changeSeq = true, seq
	}
}

// handleAck takes the number of the last message that the peer has heard.
func (m *modes) handleAck(seq uint32) {
	if m.unacked && m.posted && int32(seq-m.changeSeq) >= 0 {
		m.unacked = false
	}
}

// newModes are those at the start: combined as the standard has it, pipelined
// for good between ends with a ring.
func newModes(d flow.Control) modes {
	if d == flow.Credit {
		return modes{send: bsdh.Combined, recv: bsdh.Combined}
	}
	return modes{send: bsdh.Pipelined, recv: bsdh.Pipelined}
}

// modeChangeAllowed is the table of the standard: who asks, from where to where. Of who
// sends, from combined to buffered or pipelined, and from there back; of who
// receives, from buffered to combined.
func modeChangeAllowed(bySource bool, from, to bsdh.Mode) bool {
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
	if c.err != nil || c.closing || c.peer.FlowControl != flow.Credit || c.isQueued(bsdh.MIDModeChange) ||
		!modeChangeAllowed(!m.SendHalf, *half, m.Mode) || !m.SendHalf && c.offer.live {
		return false
	}
	*half = m.Mode
	if !m.SendHalf {
		c.peerSink.live = false // the peer drops it, too
		c.mode.unacked, c.mode.posted = true, false
	}
	say := control{id: bsdh.MIDModeChange}
	m.Append(say.ext[:0])
	c.queueControl(say)
	c.buildRequests()
	return true
}

// requestPipelined makes the peer take and give advertisements in our direction, as
// it wishes.
func (c *Core) requestPipelined() {
	if c.mode.send == bsdh.Combined {
		c.ChangeMode(bsdh.ModeChange{Mode: bsdh.Pipelined})
	}
}

// handleModeChange takes a ModeChange.
func (c *Core) handleModeChange(ext []byte) {
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
	case c.peer.FlowControl != flow.Credit:
		c.violation("ModeChange to %v in a connection by %v", m, c.peer.FlowControl)
	case !modeChangeAllowed(!m.SendHalf, *mode, m.Mode):
		c.violation("ModeChange to %v from %v", m, *mode)
	case m.Mode == bsdh.Buffered && c.peerSource.live:
		c.violation("ModeChange to %v while a SrcAvail is open", m)
	default:
		if *mode == bsdh.Pipelined {
			c.endCrossedSink()
			c.peerSource.dropped = true // the peer offers it again
			c.peerSource.live = c.peerSource.live && c.sourceRead.reading
		}
		*mode = m.Mode
	}
}
