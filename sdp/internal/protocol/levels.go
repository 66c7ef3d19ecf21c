package protocol

import "github.com/softrnic/softrnic/sdp/internal/flow"

// Levels are the current fill levels of a connection's buffers, in bytes, and its receives.
type Levels struct {
	Send     int // send buffer: written and not known to be acknowledged
	Held     int // of Send: not posted yet
	PeerUsed int // peer's receive buffer: sent and not known to be read; 0 with NIC, where only its adapter knows
	Receive  int // receive buffer: arrived and unread
	Size     int // of either buffer, N x S
	Credits  int // data messages for which the peer has receives, as last advertised; 0 with NIC, where only its adapter knows
	Receives int // posted
}

// Levels returns the current fill levels. Arrived data counts from the handling of its
// completion.
func (c *Core) Levels() Levels {
	l := Levels{Size: c.cfg.ringCapacity(), Receives: c.slots.posted}
	if !c.started {
		return l
	}
	l.Send, l.Held, l.Receive = c.sender.Unsent(), c.sender.Unposted(), c.receiver.Buffered()
	if s, ok := c.sender.(interface{ PeerUsed() int }); ok {
		l.PeerUsed = s.PeerUsed()
	}
	if c.peer.FlowControl != flow.NIC {
		l.Credits = max(0, c.credits.Available()-flow.ReservedCredits)
	}
	return l
}
