package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Packet handles a packet of another rank, whose header envelope.Header.Get has
// read without an error. The payload is the caller's again when it returns. An
// error is a breach of the protocol, or a flood, and no reason to trust the rank
// any more: the caller cuts it off, and Lost follows.
func (c *Core) Packet(from int, h *envelope.Header, payload []byte) error {
	c.enter()
	defer c.leave()
	p := &c.peers[from]
	switch {
	case p.lost != nil:
		c.Stats.Dropped++
		return nil
	case int(h.Source) != from || uint64(h.Bytes) != uint64(len(payload)):
		return fmt.Errorf("%w: rank %d: %v of rank %d with %d bytes, there are %d", ErrProtocol, from, h.Kind, h.Source, h.Bytes, len(payload))
	case !h.Kind.Ordered():
		return c.atOnce(from, h, payload)
	case h.Seq != p.next:
		return c.keep(from, p, h, payload)
	}
	p.next++
	if err := c.inOrder(from, h, payload, nil); err != nil {
		return err
	}
	return c.release(from, p)
}

// atOnce handles a packet that needs no order.
func (c *Core) atOnce(from int, h *envelope.Header, payload []byte) error {
	switch h.Kind {
	case envelope.Clear:
		return c.clear(from, h, payload)
	case envelope.Data:
		return c.data(from, h, payload)
	case envelope.Finish, envelope.Matched:
		return c.finish(from, h)
	case envelope.Throttle:
		c.throttled(from, h)
	}
	return nil // the others are for those who carry packets
}

// finish handles the end of a request that the other rank has to tell.
func (c *Core) finish(from int, h *envelope.Header) error {
	r, err := c.underway(from, h)
	if err != nil {
		return err
	}
	switch {
	case h.Kind == envelope.Matched && r.state == matching,
		h.Kind == envelope.Finish && r.state == placing,
		h.Kind == envelope.Finish && r.state == offered && r.scheme == Fetched:
		c.done(r, nil)
		return nil
	}
	return undue(from, h)
}

// underway finds the request that a rank names, if it has to do with it.
func (c *Core) underway(from int, h *envelope.Header) (*Request, error) {
	if r := c.requests.get(h.ID); r != nil && int(r.peer) == from {
		return r, nil
	}
	return nil, fmt.Errorf("%w: rank %d: %v about request %#x, which there is not", ErrProtocol, from, h.Kind, h.ID)
}

func undue(from int, h *envelope.Header) error {
	return fmt.Errorf("%w: rank %d: %v about request %#x, which does not wait for it", ErrProtocol, from, h.Kind, h.ID)
}

// How far packets of a rank may come before their turn: how many before one that
// was sent earlier, and how many bytes of them are kept.
const (
	MaxEarly      = 1 << 12
	MaxEarlyBytes = 64 << 20
)

// keep puts a packet aside that came before its predecessor: on another way.
func (c *Core) keep(from int, p *peer, h *envelope.Header, payload []byte) error {
	ahead := h.Seq - p.next
	switch {
	case ahead > MaxEarly:
		return fmt.Errorf("%w: rank %d: %v is number %d, and %d is next", ErrProtocol, from, h.Kind, h.Seq, p.next)
	case p.early[h.Seq] != nil:
		return fmt.Errorf("%w: rank %d: number %d comes twice", ErrProtocol, from, h.Seq)
	case p.earlyBytes+len(payload) > MaxEarlyBytes:
		return fmt.Errorf("%w: rank %d: more than %d bytes come before number %d", ErrProtocol, from, MaxEarlyBytes, p.next)
	}
	if p.early == nil {
		p.early = make(map[uint32]*Message)
	}
	c.Stats.Early++
	p.early[h.Seq] = c.message(h, payload)
	p.earlyBytes += len(payload)
	return nil
}

// release handles the packets that waited for the one that was just handled.
func (c *Core) release(from int, p *peer) error {
	for len(p.early) > 0 {
		m := p.early[p.next]
		if m == nil {
			break
		}
		delete(p.early, p.next)
		p.earlyBytes -= len(m.data)
		p.next++
		if err := c.inOrder(from, &m.h, m.data, m); err != nil {
			return err
		}
	}
	return nil
}

// inOrder handles a packet whose turn it is. It is in a message of its own if it
// was kept, which is used up.
func (c *Core) inOrder(from int, h *envelope.Header, payload []byte, m *Message) error {
	if h.Kind != envelope.Active {
		e := match.Envelope{Context: h.Context, Source: int32(from), Tag: h.Tag}
		n := c.posted.Receive(e)
		if n == nil {
			if m == nil {
				m = c.message(h, payload)
			}
			sign := h.Signature(payload)
			if err := c.hold(from, m); err != nil || sign == 0 || c.Strange == nil {
				return err
			}
			c.Strange(from, e, sign, nil)
			return nil
		}
		r := n.Item
		c.expected(r, e, h.Length)
		r.Sent = h.Signature(payload)
		if r.Sent != r.Sign && r.Sent != 0 && r.Sign != 0 && c.Strange != nil {
			c.Strange(from, e, r.Sent, r)
		}
		if h.Kind == envelope.Eager {
			c.matched(h)
			c.deliver(r, payload)
		} else {
			c.fetchOrAsk(r, h, payload)
		}
	} else if err := c.handle(from, h, payload); err != nil {
		return err
	}
	if m != nil {
		c.recycle(m)
	}
	return nil
}
