package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/match"
)

// Receive begins a receive.
func (c *Core) Receive(r *Request) {
	r.node.Item, r.node.Envelope = r, r.Envelope
	if n := c.unexpected.Message(r.Envelope); n != nil {
		c.unexpected.Remove(n)
		c.take(r, n.Item)
		return
	}
	if err := c.Hopeless(r.Envelope, r.Among); err != nil {
		c.done(r, err)
		return
	}
	r.state = waiting
	c.posted.Push(&r.node)
}

// Probe finds the message that a receive would take, nil if there is none. With
// take it is the caller's, for ReceiveMessage.
func (c *Core) Probe(e match.Envelope, take bool) *Message {
	n := c.unexpected.Message(e)
	if n == nil {
		return nil
	}
	if take {
		c.unexpected.Remove(n)
	}
	return n.Item
}

// ReceiveMessage begins the receive of a message that Probe took.
func (c *Core) ReceiveMessage(r *Request, m *Message) {
	r.node.Item, r.node.Envelope = r, r.Envelope
	c.take(r, m)
}

// Cancel ends a receive that has no message yet, and reports whether it had none.
func (c *Core) Cancel(r *Request) bool {
	if !r.node.Queued() {
		return false
	}
	c.posted.Remove(&r.node)
	c.done(r, ErrCanceled)
	return true
}

// take gives a receive its message.
func (c *Core) take(r *Request, m *Message) {
	r.Received = m.Envelope
	switch {
	case m.self != nil:
		c.deliver(r, m.self.Buf)
		c.done(m.self, nil)
	case m.kind == envelope.Eager:
		c.deliver(r, m.data)
		if m.flags&envelope.Synchronous != 0 {
			c.answer(int(m.Envelope.Source), envelope.Matched, m.id)
		}
	default:
		c.begin(r, m)
	}
	c.recycle(m)
}

// deliver copies a whole message to its receive.
func (c *Core) deliver(r *Request, data []byte) {
	r.Bytes = copy(r.Buf, data)
	var err error
	if len(data) > len(r.Buf) {
		err = r.truncated(uint64(len(data)))
	}
	c.done(r, err)
}

// begin starts the transfer of a message that its sender has announced.
func (c *Core) begin(r *Request, m *Message) {
	from := int(m.Envelope.Source)
	if err := c.peers[from].lost; err != nil {
		c.done(r, err)
		return
	}
	r.peer, r.to = int32(from), m.id
	r.Bytes = int(min(m.Length, uint64(len(r.Buf))))
	if m.Length > uint64(len(r.Buf)) {
		r.Err = r.truncated(m.Length)
	}
	c.requests.add(r)
	switch {
	case m.flags&(envelope.Copied|envelope.Place) == 0:
		r.state = fetching
		if r.Bytes == 0 {
			c.Moved(r.id, nil)
			return
		}
		o := outgoing{r: r, op: fetch}
		m.key.Put(o.key[:])
		c.push(from, &o)
	case m.flags&envelope.Place != 0:
		r.state = placing
		o := outgoing{h: c.header(envelope.Clear, m.id), n: envelope.KeySize}
		key := envelope.Key{}
		if r.Bytes > 0 {
			var err error
			if key, r.exposed, err = c.net.Expose(from, r.Buf[:r.Bytes], true); err != nil {
				r.Err = err
				r.Bytes = 0
			}
		}
		key.ID = r.id
		key.Put(o.key[:])
		o.h.Flags, o.h.Length = envelope.Place, uint64(r.Bytes)
		o.h.Bytes = envelope.KeySize
		c.push(from, &o)
	default:
		o := outgoing{h: c.header(envelope.Clear, m.id), n: envelope.KeySize}
		r.state, r.left = filling, uint64(r.Bytes)
		key := envelope.Key{ID: r.id}
		key.Put(o.key[:])
		o.h.Length = uint64(r.Bytes)
		o.h.Bytes = envelope.KeySize
		c.push(from, &o)
		if r.left == 0 {
			c.done(r, nil)
		}
	}
}

func (c *Core) header(kind envelope.Kind, id uint64) envelope.Header {
	return envelope.Header{Kind: kind, ID: id, Source: uint32(c.rank)}
}

// answer sends a packet without payload about a request of the other rank.
func (c *Core) answer(to int, kind envelope.Kind, id uint64) {
	c.push(to, &outgoing{h: c.header(kind, id)})
}

// Moved says that a Fetch or a Store is done.
func (c *Core) Moved(move uint64, err error) {
	r := c.requests.get(move)
	if r == nil {
		return // lost meanwhile
	}
	if err == nil && r.state == fetching {
		c.answer(int(r.peer), envelope.Finish, r.to)
	}
	c.done(r, err)
}

// Packet handles a packet of another rank. The payload is the caller's again
// when it returns. An error is a breach of the protocol, and no reason to
// trust the rank any more: Lost should follow.
func (c *Core) Packet(from int, h *envelope.Header, payload []byte) error {
	if h.Kind.Ordered() {
		p := &c.peers[from]
		if h.Seq != p.next {
			return c.keep(p, h, payload)
		}
		p.next++
		if err := c.inOrder(from, h, payload); err != nil {
			return err
		}
		return c.release(from, p)
	}
	switch h.Kind {
	case envelope.Clear:
		return c.clear(from, h, payload)
	case envelope.Data:
		return c.data(from, h, payload)
	case envelope.Finish, envelope.Matched:
		r := c.underway(from, h.ID)
		if r == nil || r.state != asking && r.state != placing {
			return c.stranger(from, h)
		}
		c.done(r, nil)
	case envelope.Hello, envelope.Credit, envelope.Bye: // for those who carry packets
	}
	return nil
}

// underway finds the request that a rank names, if it has to do with it.
func (c *Core) underway(from int, id uint64) *Request {
	if r := c.requests.get(id); r != nil && int(r.peer) == from {
		return r
	}
	return nil
}

func (c *Core) stranger(from int, h *envelope.Header) error {
	c.Stats.Dropped++
	return fmt.Errorf("%w: %v of rank %d names request %#x, which there is not", ErrProtocol, h.Kind, from, h.ID)
}

// maxEarly bounds the packets of a rank that wait for an earlier one.
const maxEarly = 1 << 14

// keep puts a packet aside that came before its predecessor: on another way.
func (c *Core) keep(p *peer, h *envelope.Header, payload []byte) error {
	if int32(h.Seq-p.next) < 0 || len(p.early) >= maxEarly {
		c.Stats.Dropped++
		return fmt.Errorf("%w: packet %d of rank %d, %d is next", ErrProtocol, h.Seq, h.Source, p.next)
	}
	c.Stats.Early++
	p.early = append(p.early, early{*h, append([]byte(nil), payload...)})
	return nil
}

// release handles the packets that waited for the one that was just handled.
func (c *Core) release(from int, p *peer) error {
	for again := len(p.early) > 0; again; {
		again = false
		for i := range p.early {
			if e := p.early[i]; e.h.Seq == p.next {
				p.early[i] = p.early[len(p.early)-1]
				p.early = p.early[:len(p.early)-1]
				p.next++
				if err := c.inOrder(from, &e.h, e.payload); err != nil {
					return err
				}
				again = len(p.early) > 0
				break
			}
		}
	}
	return nil
}

// inOrder handles a packet whose turn it is.
func (c *Core) inOrder(from int, h *envelope.Header, payload []byte) error {
	if h.Kind == envelope.Active {
		if c.Handler != nil {
			return c.Handler(from, h, payload)
		}
		return nil
	}
	e := match.Envelope{Context: h.Context, Source: int32(from), Tag: h.Tag}
	n := c.posted.Receive(e)
	if n != nil && h.Kind == envelope.Eager {
		c.Stats.Expected++
		c.posted.Remove(n)
		r := n.Item
		r.Received = e
		c.deliver(r, payload)
		if h.Flags&envelope.Synchronous != 0 {
			c.answer(from, envelope.Matched, h.ID)
		}
		return nil
	}
	m := c.message()
	m.Envelope, m.Length, m.kind, m.flags, m.id = e, h.Length, h.Kind, h.Flags, h.ID
	if h.Kind == envelope.Eager {
		m.data = append(m.data[:0], payload...)
	} else if h.Flags&(envelope.Copied|envelope.Place) == 0 {
		if err := m.key.Get(payload); err != nil {
			return err
		}
	}
	if n != nil {
		c.Stats.Expected++
		c.posted.Remove(n)
		c.take(n.Item, m)
		return nil
	}
	c.Stats.Unexpected++
	m.node.Item, m.node.Envelope = m, e
	c.unexpected.Push(&m.node)
	return nil
}

// clear handles the answer to Ready: the receive is there.
func (c *Core) clear(from int, h *envelope.Header, payload []byte) error {
	r := c.underway(from, h.ID)
	if r == nil || r.state != offering || h.Length > uint64(len(r.Buf)) {
		return c.stranger(from, h)
	}
	var key envelope.Key
	if err := key.Get(payload); err != nil {
		return err
	}
	r.to, r.state = key.ID, streaming
	r.Bytes = int(h.Length)
	o := outgoing{r: r, op: sendParts}
	if h.Flags&envelope.Place != 0 {
		if r.Bytes == 0 {
			c.answer(from, envelope.Finish, r.to)
			c.done(r, nil)
			return nil
		}
		o.op, r.state = store, storing
		key.Put(o.key[:])
	}
	c.push(from, &o)
	return nil
}

// data handles a part of a message.
func (c *Core) data(from int, h *envelope.Header, payload []byte) error {
	r := c.underway(from, h.ID)
	if r == nil || r.state != filling || h.Length > uint64(r.Bytes) || uint64(len(payload)) > uint64(r.Bytes)-h.Length ||
		uint64(len(payload)) > r.left {
		return c.stranger(from, h)
	}
	copy(r.Buf[h.Length:], payload)
	r.left -= uint64(len(payload))
	if r.left == 0 {
		c.done(r, nil)
	}
	return nil
}

// sendSelf is a send to ourselves.
func (c *Core) sendSelf(r *Request) {
	e := r.Envelope
	e.Source = int32(c.rank)
	if n := c.posted.Receive(e); n != nil {
		c.Stats.Expected++
		c.posted.Remove(n)
		n.Item.Received = e
		c.deliver(n.Item, r.Buf)
		c.done(r, nil)
		return
	}
	c.Stats.Unexpected++
	m := c.message()
	m.Envelope, m.Length, m.kind = e, uint64(len(r.Buf)), envelope.Eager
	m.node.Item, m.node.Envelope = m, e
	if r.Sync || len(r.Buf) > selfCopy {
		m.self = r
		r.state = asking
	} else {
		m.data = append(m.data[:0], r.Buf...)
		c.done(r, nil)
	}
	c.unexpected.Push(&m.node)
}

// selfCopy is the length of the longest message to ourselves that is copied
// aside, so that its send is done at once.
const selfCopy = 16 << 10

// message returns an empty message.
func (c *Core) message() *Message {
	if n := len(c.free); n > 0 {
		m := c.free[n-1]
		c.free = c.free[:n-1]
		return m
	}
	return &Message{}
}

// recycle keeps a message for the next one.
func (c *Core) recycle(m *Message) {
	if len(c.free) >= 256 || cap(m.data) > 64<<10 {
		return
	}
	*m = Message{data: m.data[:0]}
	c.free = append(c.free, m)
}
