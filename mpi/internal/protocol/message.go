package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// A Message is an unexpected message, or a packet that arrived out of order.
type Message struct {
	Envelope match.Envelope
	Length   uint64

	header   envelope.Header
	data     []byte   // copy of the packet's payload
	selfSend *Request // send request of a message from the own rank
	node     match.Node[*Message]
}

// Signature returns the Request.Signature of the sender.
func (m *Message) Signature() uint64 { return m.header.Signature(m.data) }

// Bounds of the unexpected messages of a rank.
const (
	// throttleWatermark is the number of bytes above which the rank is asked to use a
	// rendezvous for all messages, until less than half of it is left.
	throttleWatermark = 64 << 20

	// maxUnexpectedBytes is the limit in bytes; beyond it is ErrUnexpectedLimit.
	maxUnexpectedBytes = 1 << 30

	// messageOverhead is the cost in bytes that is charged per message in addition to
	// its payload.
	messageOverhead = 256
)

// queueUnexpected appends a message to the unexpected queue.
func (c *Core) queueUnexpected(from int, m *Message) error {
	p := c.peers.Get(from)
	c.Stats.Unexpected++
	p.unexpectedBytes += len(m.data) + messageOverhead
	m.node.Item, m.node.Envelope = m, m.Envelope
	c.unexpected.Push(&m.node)
	if p.unexpectedBytes > c.maxUnexpectedBytes {
		return fmt.Errorf("%w: %d MiB in %d messages, mostly of rank %d", ErrUnexpectedLimit, p.unexpectedBytes>>20, c.unexpected.Len(), from)
	}
	if p.unexpectedBytes > c.throttleWatermark && !p.throttled && from != c.rank {
		p.throttled = true
		c.Stats.Throttled++
		c.enqueue(from, sendOp{op: opThrottle})
	}
	return nil
}

// dequeueUnexpected removes a message from the unexpected queue.
func (c *Core) dequeueUnexpected(m *Message) {
	from := int(m.Envelope.Source)
	p := c.peers.Get(from)
	c.unexpected.Remove(&m.node)
	p.unexpectedBytes -= len(m.data) + messageOverhead
	if p.throttled && p.unexpectedBytes < c.throttleWatermark/2 {
		p.throttled = false
		c.enqueue(from, sendOp{op: opThrottle})
	}
}

// newMessage returns a message with a copy of a packet, from the free list if possible.
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

// Bounds of the free list: messages, and bytes of the payload of each.
const (
	maxFreeMessages     = 256
	maxFreeMessageBytes = 64 << 10
)

// recycleMessage returns a message to the free list.
func (c *Core) recycleMessage(m *Message) {
	if len(c.free) < maxFreeMessages && cap(m.data) <= maxFreeMessageBytes {
		*m = Message{data: m.data[:0]}
		c.free = append(c.free, m)
	}
}
