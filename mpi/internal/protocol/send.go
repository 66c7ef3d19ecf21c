package protocol

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Send begins a send.
func (c *Core) Send(r *Request) {
	c.enter()
	defer c.leave()
	r.peer, r.Bytes = int32(r.Dest), len(r.Buf)
	if c.ended != nil {
		c.done(r, c.ended)
		return
	}
	if r.Dest == c.rank {
		c.sendSelf(r)
		return
	}
	c.push(r.Dest, outgoing{op: message, r: r})
}

// sendMessage sends a message whose turn has come, or announces it, and reports
// whether there was room.
func (c *Core) sendMessage(to int, r *Request) bool {
	limits := c.net.Limits(to)
	if len(r.Buf) <= limits.Eager && !c.peers[to].announces {
		return c.sendEager(to, r)
	}
	if len(r.Buf) <= limits.Eager {
		limits.Rdma = Packed // memory is not worth being moved
	}
	return c.announce(to, r, limits.Rdma)
}

func (c *Core) sendEager(to int, r *Request) bool {
	p := &c.peers[to]
	h := c.begin(envelope.Eager, 0)
	h.Context, h.Tag, h.Length, h.Bytes, h.Seq = r.Envelope.Context, r.Envelope.Tag, uint64(len(r.Buf)), uint32(len(r.Buf)), p.seq
	if r.Sync {
		c.requests.add(r)
		h.ID, h.Flags = r.id, envelope.Synchronous
	}
	h.SetSignature(r.Sign)
	if !c.send(to, h, r.Buf) {
		return false
	}
	p.seq++
	c.Stats.Eager++
	if r.Sync {
		r.state = matching
	} else {
		c.done(r, p.lost)
	}
	return true
}

// announce sends Ready.
func (c *Core) announce(to int, r *Request, scheme Scheme) bool {
	p := &c.peers[to]
	if scheme == Fetched && r.exposed == nil {
		var err error
		if r.key, r.exposed, err = c.net.Expose(to, r.Buf, false); err != nil {
			c.Stats.Repacked++
			scheme = Packed
		}
	}
	c.requests.add(r)
	h := c.begin(envelope.Ready, r.id)
	h.Context, h.Tag, h.Length, h.Seq = r.Envelope.Context, r.Envelope.Tag, uint64(len(r.Buf)), p.seq
	var payload []byte
	switch scheme {
	case Fetched:
		r.key.ID = r.Sign
		r.key.Put(c.key[:])
		payload = c.key[:]
	case Stored:
		h.Flags = envelope.Place
	case Packed:
		h.Flags = envelope.Copied
	}
	if scheme != Fetched && r.Sign != 0 {
		payload = c.key[:envelope.SignatureSize]
		binary.LittleEndian.PutUint64(payload, r.Sign)
	}
	h.Bytes = uint32(len(payload))
	if !c.send(to, h, payload) {
		return false
	}
	p.seq++
	c.Stats.Rendezvous++
	r.state, r.scheme = offered, scheme
	return true
}

// clear handles the answer to Ready: the receive is there, and says how much of
// the message it wants and how.
func (c *Core) clear(from int, h *envelope.Header, payload []byte) error {
	r, err := c.underway(from, h)
	place := h.Flags == envelope.Place
	switch {
	case err != nil:
		return err
	case r.state != offered:
		return undue(from, h)
	case h.Length > uint64(len(r.Buf)):
		return fmt.Errorf("%w: rank %d: CTS for %d bytes of a message of %d", ErrProtocol, from, h.Length, len(r.Buf))
	case place && (r.scheme != Stored || h.Length == 0):
		return fmt.Errorf("%w: rank %d: CTS with memory for %d bytes of a message that is not written (%v)", ErrProtocol, from, h.Length, r.scheme)
	}
	var key envelope.Key
	if err := key.Get(payload); err != nil {
		return fmt.Errorf("%w: rank %d: %w", ErrProtocol, from, err)
	}
	r.key, r.to, r.Bytes = key, key.ID, int(h.Length)
	o := outgoing{op: stream, r: r}
	if place {
		o.op = store
	}
	c.push(from, o)
	return nil
}

// sendStored writes a message to the receiver's memory, and tells it.
func (c *Core) sendStored(to int, r *Request) bool {
	if r.state == queued {
		switch err := c.net.Store(to, r.Buf[:r.Bytes], r.key, r.id); {
		case err == ErrNoRoom:
			return false
		case err == nil:
			r.state = storing
			c.push(to, outgoing{op: answer, kind: envelope.Finish, id: r.to})
			return true
		}
		c.Stats.Repacked++
		r.state = streaming
	}
	return c.sendParts(to, r)
}

// sendParts sends as much of a message as there is room for.
func (c *Core) sendParts(to int, r *Request) bool {
	r.state = streaming
	limit := uint64(max(1, c.net.Limits(to).Eager))
	for r.offset < uint64(r.Bytes) {
		n := min(uint64(r.Bytes)-r.offset, limit)
		h := c.begin(envelope.Data, r.to)
		h.Length, h.Bytes = r.offset, uint32(n)
		if !c.send(to, h, r.Buf[r.offset:r.offset+n]) {
			return false
		}
		r.offset += n
	}
	c.done(r, c.peers[to].lost)
	return true
}

// selfCopy is the length of the longest message to ourselves that is copied
// aside, so that its send is done at once.
const selfCopy = 16 << 10

// sendSelf is a send to ourselves.
func (c *Core) sendSelf(r *Request) {
	c.Stats.Self++
	e := match.Envelope{Context: r.Envelope.Context, Source: int32(c.rank), Tag: r.Envelope.Tag}
	if n := c.posted.Receive(e); n != nil {
		c.expected(n.Item, e, uint64(len(r.Buf)))
		n.Item.Sent = r.Sign
		c.deliver(n.Item, r.Buf)
		c.done(r, nil)
		return
	}
	h := c.begin(envelope.Eager, 0)
	h.Context, h.Tag, h.Length = e.Context, e.Tag, uint64(len(r.Buf))
	h.SetSignature(r.Sign)
	m := c.message(h, nil)
	if r.Sync || len(r.Buf) > selfCopy {
		m.self, r.state = r, waiting
	} else {
		m.data = append(m.data, r.Buf...)
		c.done(r, nil)
	}
	_ = c.hold(c.rank, m) // as much as the program wants
}
