package nack

import "fmt"

// An Event is a state change of a peer.
type Event struct {
	Peer int
	Kind EventKind
}

// An EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events.
const (
	// Writable reports that a message which Send refused with ErrWouldBlock can
	// be sent.
	Writable EventKind = iota
	// Restarted reports that the peer has a new incarnation. Unacknowledged
	// messages may be lost, and later messages go to the new incarnation.
	Restarted
	// TimedOut reports that the peer did not respond, or did not continue a
	// message, for Options.GiveUp. The peer is closed.
	TimedOut
	// ProtocolError reports that the peer violated the protocol. The peer is
	// closed.
	ProtocolError
)

// String implements fmt.Stringer.
func (k EventKind) String() string {
	names := [...]string{"writable", "restarted", "timed out", "protocol error"}
	if int(k) >= len(names) {
		return fmt.Sprintf("EventKind(%d)", uint8(k))
	}
	return names[k]
}

// NextEvent removes and returns the oldest event, if any.
func (c *Core) NextEvent() (e Event, ok bool) {
	if c.events.Len() > 0 {
		return c.events.Pop(), true
	}
	for c.slotWaiters.Len() > 0 && len(c.slots.free) > 0 {
		p := *c.slotWaiters.Front()
		if p.slotStarved && int(p.needed) > len(c.slots.free) {
			return Event{}, false
		}
		c.slotWaiters.Pop()
		if p.slotStarved {
			p.slotStarved = false
			return Event{Peer: p.number, Kind: Writable}, true
		}
	}
	return Event{}, false
}
