package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/sdp/internal/flow"
)

// modes are the transfer modes of both directions.
type modes struct {
	send, recv bsdh.Mode
	unacked    bool   // the peer has not acknowledged the last local ModeChange of send
	posted     bool   // that ModeChange has been posted
	changeSeq  uint32 // its sequence number
}

// recordModeChange records that a ModeChange is posted as message seq.
func (m *modes) recordModeChange(seq uint32) {
	if m.unacked && !m.posted {
		m.posted, m.changeSeq = true, seq
	}
}

// handleAck applies the acknowledgement of all messages up to seq.
func (m *modes) handleAck(seq uint32) {
	if m.unacked && m.posted && int32(seq-m.changeSeq) >= 0 {
		m.unacked = false
	}
}

// newModes returns the initial modes: combined with Credit, as in the standard, and permanently
// pipelined between peers with a ring.
func newModes(d flow.Control) modes {
	if d == flow.Credit {
		return modes{send: bsdh.Combined, recv: bsdh.Combined}
	}
	return modes{send: bsdh.Pipelined, recv: bsdh.Pipelined}
}

// modeChangeAllowed implements the standard's table of mode changes. The source may change from
// combined to buffered or pipelined, and from pipelined to combined; the sink from buffered to
// combined.
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
			c.peerSource.live = c.peerSource.live && c.sourceRead.reading
		}
		*mode = m.Mode
	}
}
