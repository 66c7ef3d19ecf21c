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

	header   envelope.Header
	data     []byte   // payload of the packet
	selfSend *Request // the send of one from ourselves
	node     match.Node[*Message]
}

// Signature returns the Request.Signature that the sender has given the message.
func (m *Message) Signature() uint64 { return m.header.Signature(m.data) }

// What a rank's messages may take here until they are received.
const (
	// From maxHeld on the rank is asked to announce what it sends, until less
	// than half of it is left. Then its sends wait for our receives.
	throttleWatermark = 64 << 20

	// maxUnexpectedBytes is the end of it: ErrFlood.
	maxUnexpectedBytes = 1 << 30

	// messageOverhead is what a message takes besides its bytes.
	messageOverhead = 256
)

// queueUnexpected puts a message aside until its receive comes.
func (c *Core) queueUnexpected(from int, m *Message) error {
	p := &c.peers[from]
	c.Stats.Unexpected++
	p.unexpectedBytes += len(m.data) + messageOverhead
	m.node.Item, m.node.Envelope = m, m.Envelope
	c.unexpected.Push(&m.node)
	if p.unexpectedBytes > c.maxUnexpectedBytes {
		return fmt.Errorf("%w: %d MiB in %d messages, of which most are of rank %d", ErrUnexpectedLimit, p.unexpectedBytes>>20, c.unexpected.Len(), from)
	}
	if p.unexpectedBytes > c.throttleWatermark && !p.throttled && from != c.rank {
		p.throttled = true
		c.Stats.Throttled++
		c.enqueue(from, sendOp{op: opThrottle})
	}
	return nil
}

// dequeueUnexpected takes a message that waits.
func (c *Core) dequeueUnexpected(m *Message) {
	from := int(m.Envelope.Source)
	p := &c.peers[from]
	c.unexpected.Remove(&m.node)
	p.unexpectedBytes -= len(m.data) + messageOverhead
	if p.throttled && p.unexpectedBytes < c.throttleWatermark/2 {
		p.throttled = false
		c.enqueue(from, sendOp{op: opThrottle})
	}
}

// newMessage returns a message that holds a packet. Its data is a copy.
func (c *Core) newMessage(h *envelope.Header, payload []byte) *Message {
	var m *Message
	if n := len(c.free) - 1; n >= 0 {
		m = c.free[n]
		c.free[n] = nil
		c.free = c.free[:n]
	} else {
		m = &Message{}
	}
	m.Envelope = match.Envelope{Context: h.Context, Source: int32(h.Source), Tag: h.Tag}
	m.Length, m.header, m.data = h.Length, *h, append(m.data[:0], payload...)
	return m
}

// How many messages, and how long ones, are kept to be used again.
const (
	maxFreeMessages     = 256
	maxFreeMessageBytes = 64 << 10
)

// recycle keeps a message that nobody needs any more for the next one.
func (c *Core) recycle(m *Message) {
	if len(c.free) < maxFreeMessages && cap(m.data) <= maxFreeMessageBytes {
		*m = Message{data: m.data[:0]}
		c.free = append(c.free, m)
	}
}
