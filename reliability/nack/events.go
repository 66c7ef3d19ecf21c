package nack

import "fmt"

// Event is what has become of a peer.
type Event struct {
	Peer int
	Kind EventKind
}

// EventKind says what it is.
type EventKind uint8

// The kinds of events.
const (
	// Writable: there is room for the message that was ErrNoRoom.
	Writable EventKind = iota
	// Restarted: the peer has another life. What it had not acknowledged may
	// be lost, and what is sent now goes to the new one.
	Restarted
	// TimedOut: the peer has taken nothing for long, or left something undone, and
	// is closed.
	TimedOut
	// ProtocolError: the peer breaks the rules, and is closed.
	ProtocolError
)

func (k EventKind) String() string {
	names := [...]string{"writable", "restarted", "lost", "broken"}
	if int(k) >= len(names) {
		return fmt.Sprintf("EventKind(%d)", uint8(k))
	}
	return names[k]
}

// NextEvent takes an event, if there is one.
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
