package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Message is a message that has come and has no receive yet, or a packet whose
// turn has not come.
type Message struct {
	Envelope match.Envelope
	Length   uint64

	h    envelope.Header
	data []byte   // payload of the packet
	self *Request // the send of one from ourselves
	node match.Node[*Message]
}

// Signature returns the Request.Sign that the sender has given the message.
func (m *Message) Signature() uint64 { return m.h.Signature(m.data) }

// What a rank's messages may take here until they are received.
const (
	// From maxHeld on the rank is asked to announce what it sends, until less
	// than half of it is left. Then its sends wait for our receives.
	maxHeld = 64 << 20

	// maxFlood is the end of it: ErrFlood.
	maxFlood = 1 << 30

	// overhead is what a message takes besides its bytes.
	overhead = 256
)

// hold puts a message aside until its receive comes.
func (c *Core) hold(from int, m *Message) error {
	p := &c.peers[from]
	c.Stats.Unexpected++
	p.held += len(m.data) + overhead
	m.node.Item, m.node.Envelope = m, m.Envelope
	c.unexpected.Push(&m.node)
	if p.held > c.maxFlood {
		return fmt.Errorf("%w: %d MiB in %d messages, of which most are of rank %d", ErrFlood, p.held>>20, c.unexpected.Len(), from)
	}
	if p.held > c.maxHeld && !p.holding && from != c.rank {
		p.holding = true
		c.Stats.Throttled++
		c.push(from, outgoing{op: throttle})
	}
	return nil
}

// take takes a message that waits.
func (c *Core) take(m *Message) {
	from := int(m.Envelope.Source)
	p := &c.peers[from]
	c.unexpected.Remove(&m.node)
	p.held -= len(m.data) + overhead
	if p.holding && p.held < c.maxHeld/2 {
		p.holding = false
		c.push(from, outgoing{op: throttle})
	}
}

// message returns a message that holds a packet. Its data is a copy.
func (c *Core) message(h *envelope.Header, payload []byte) *Message {
	var m *Message
	if n := len(c.free) - 1; n >= 0 {
		m = c.free[n]
		c.free[n] = nil
		c.free = c.free[:n]
	} else {
		m = &Message{}
	}
	m.Envelope = match.Envelope{Context: h.Context, Source: int32(h.Source), Tag: h.Tag}
	m.Length, m.h, m.data = h.Length, *h, append(m.data[:0], payload...)
	return m
}

// How many messages, and how long ones, are kept to be used again.
const (
	keptMessages = 256
	keptBytes    = 64 << 10
)

// recycle keeps a message that nobody needs any more for the next one.
func (c *Core) recycle(m *Message) {
	if len(c.free) < keptMessages && cap(m.data) <= keptBytes {
		*m = Message{data: m.data[:0]}
		c.free = append(c.free, m)
	}
}
