package protocol

import "github.com/softrnic/softrnic/sdp/internal/flow"

// Levels are what the buffers of a connection hold at a moment, in bytes, and
// the receives on either side.
type Levels struct {
	Send     int // of the send buffer: written, and not known to be with the peer's adapter
	Held     int // of Send: not given to our adapter yet
	PeerUsed int // of the peer's buffer: sent, and not known to be read; its adapter's secret with NIC, and 0
	Receive  int // of the receive buffer: arrived and not read
	Size     int // of either buffer, N x S
	Credits  int // messages with data that the peer has receives for, by its last word; its adapter's secret with NIC, and 0
	Receives int // posted for the peer
}

// Levels looks at the buffers. What has arrived counts when its completion has
// been handled.
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
