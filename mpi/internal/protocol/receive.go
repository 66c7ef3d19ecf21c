package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Receive begins a receive.
func (c *Core) Receive(r *Request) {
	c.enter()
	defer c.leave()
	if c.ended != nil {
		c.done(r, c.ended)
		return
	}
	if n := c.unexpected.Message(r.Envelope); n != nil {
		c.take(n.Item)
		r.Late = true
		c.receive(r, n.Item)
		return
	}
	if err := c.Hopeless(r.Envelope, r.Among); err != nil {
		c.done(r, err)
		return
	}
	r.state = waiting
	r.node.Item, r.node.Envelope = r, r.Envelope
	c.posted.Push(&r.node)
}

// Probe finds the message that a receive would take, nil if there is none. With
// take it is the caller's, for ReceiveMessage; else it may be gone with the next
// call of the Core. See Hopeless.
func (c *Core) Probe(e match.Envelope, take bool) *Message {
	n := c.unexpected.Message(e)
	if n == nil {
		return nil
	}
	if take {
		c.enter()
		defer c.leave()
		c.take(n.Item)
	}
	return n.Item
}

// ReceiveMessage begins the receive of a message that Probe took, once.
func (c *Core) ReceiveMessage(r *Request, m *Message) {
	c.enter()
	defer c.leave()
	c.receive(r, m)
}

// Cancel ends a receive that has no message yet, and reports whether it had none.
func (c *Core) Cancel(r *Request) bool {
	if !r.node.Queued() {
		return false
	}
	c.enter()
	defer c.leave()
	c.posted.Remove(&r.node)
	c.done(r, ErrCanceled)
	return true
}

// expected takes a receive that waited for its message.
func (c *Core) expected(r *Request, e match.Envelope, length uint64) {
	c.Stats.Expected++
	c.posted.Remove(&r.node)
	r.Received, r.length = e, length
}

// receive gives a receive its message, which is used up.
func (c *Core) receive(r *Request, m *Message) {
	r.Received, r.length = m.Envelope, m.Length
	switch {
	case m.self != nil:
		r.Sent = m.self.Sign
		c.deliver(r, m.self.Buf)
		c.done(m.self, nil)
	case m.h.Kind == envelope.Eager:
		r.Sent = m.h.Signature(m.data)
		c.matched(&m.h)
		c.deliver(r, m.data)
	default:
		r.Sent = m.h.Signature(m.data)
		c.fetchOrAsk(r, &m.h, m.data)
	}
	c.recycle(m)
}

// matched tells the sender of an eager message that its receive is there.
func (c *Core) matched(h *envelope.Header) {
	if h.Flags&envelope.Synchronous != 0 {
		c.push(int(h.Source), outgoing{op: answer, kind: envelope.Matched, id: h.ID})
	}
}

// deliver copies a whole message to its receive.
func (c *Core) deliver(r *Request, data []byte) {
	r.Bytes = copy(r.Buf, data)
	c.done(r, nil)
}

// fetchOrAsk starts the transfer of a message that its sender has announced.
func (c *Core) fetchOrAsk(r *Request, h *envelope.Header, payload []byte) {
	r.peer, r.to = int32(h.Source), h.ID
	r.Bytes = int(min(h.Length, uint64(len(r.Buf))))
	o := outgoing{op: clearTo, r: r}
	switch h.Flags {
	case envelope.Copied:
		r.scheme = Packed
	case envelope.Place:
		r.scheme = Stored
	default:
		if r.Bytes == 0 {
			c.push(int(r.peer), outgoing{op: answer, kind: envelope.Finish, id: r.to})
			c.done(r, nil)
			return
		}
		_ = r.key.Get(payload) // which has its length
		r.scheme, o.op = Fetched, fetch
	}
	c.push(int(r.peer), o)
}

// fetch reads a message from the sender's memory.
func (c *Core) fetch(from int, r *Request) bool {
	c.requests.add(r)
	switch err := c.net.Fetch(from, r.Buf[:r.Bytes], r.key, r.id); {
	case err == ErrNoRoom:
		return false
	case err == nil:
		r.state = fetching
		return true
	}
	if r.scheme != Packed {
		c.Stats.Repacked++
		r.scheme = Packed
	}
	return c.sendClear(from, r)
}

// sendClear asks the sender for a message.
func (c *Core) sendClear(to int, r *Request) bool {
	c.requests.add(r)
	if r.scheme == Stored && r.exposed == nil && r.Bytes > 0 {
		var err error
		if r.key, r.exposed, err = c.net.Expose(to, r.Buf[:r.Bytes], true); err != nil {
			c.Stats.Repacked++
			r.scheme = Packed
		}
	}
	h := c.begin(envelope.Clear, r.to)
	h.Length, h.Bytes = uint64(r.Bytes), envelope.KeySize
	key := envelope.Key{}
	if r.exposed != nil {
		key, h.Flags = r.key, envelope.Place
	}
	key.ID = r.id
	key.Put(c.key[:])
	if !c.send(to, h, c.key[:]) {
		return false
	}
	switch {
	case r.Bytes == 0:
		c.done(r, nil)
	case r.exposed != nil:
		r.state = placing
	default:
		r.state = filling
	}
	return true
}

// data handles a part of a message.
func (c *Core) data(from int, h *envelope.Header, payload []byte) error {
	r, err := c.underway(from, h)
	if err != nil {
		return err
	}
	if r.state != filling && r.state != placing {
		return undue(from, h)
	}
	end := h.Length + uint64(len(payload))
	if end > uint64(r.Bytes) {
		return fmt.Errorf("%w: rank %d: DATA for %d to %d of %d bytes", ErrProtocol, from, h.Length, end, r.Bytes)
	}
	if !r.parts.add(h.Length, end) {
		return fmt.Errorf("%w: rank %d: DATA for %d to %d a second time, or in too many pieces", ErrProtocol, from, h.Length, end)
	}
	r.state = filling // also if it was to be stored: that could not be done
	copy(r.Buf[h.Length:], payload)
	if r.parts.front == uint64(r.Bytes) {
		c.done(r, nil)
	}
	return nil
}
