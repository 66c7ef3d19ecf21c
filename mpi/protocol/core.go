package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/match"
)

// Core is the point-to-point protocol of one rank.
type Core struct {
	net   Net
	rank  int
	peers []peer

	posted     *match.Queue[*Request] // receives that wait for a message
	unexpected *match.Queue[*Message] // messages that wait for a receive
	requests   table

	free []*Message // to be used again

	// Handler is given Active packets. Header and payload are its own until it
	// returns. An error is a breach of the protocol.
	Handler func(from int, h *envelope.Header, payload []byte) error

	Stats Stats
}

// Stats counts what a Core has done.
type Stats struct {
	Eager, Rendezvous uint64 // messages sent
	Expected          uint64 // messages that found their receive waiting
	Unexpected        uint64
	Early             uint64 // packets that came before one that was sent earlier
	Stalled           uint64 // packets that had to wait for room
	Dropped           uint64 // packets that nobody can be meant by
}

// peer is what a Core knows of another rank.
type peer struct {
	seq   uint32 // of the next ordered packet to it
	next  uint32 // that is expected from it
	early []early
	queue []outgoing // packets that wait for room
	lost  error
}

// early is an ordered packet that came too early.
type early struct {
	h       envelope.Header
	payload []byte
}

// outgoing is a packet that waits for room.
type outgoing struct {
	h   envelope.Header
	key [envelope.KeySize]byte
	n   int      // bytes of key that are the payload
	r   *Request // whose buffer is the payload, or that moves
	op  op
	raw []byte // payload of Active
}

type op uint8

const (
	sendKey   op = iota // the payload is the key
	sendBuf             // the payload is the request's buffer
	sendParts           // the request's buffer leaves in parts
	fetch               // by Net.Fetch
	store               // by Net.Store
	sendRaw
)

// New returns the core of a rank in a job of size ranks. Until Attach it can
// do nothing but talk to itself.
func New(rank, size int) *Core {
	return &Core{rank: rank, peers: make([]peer, size),
		posted: match.NewQueue[*Request](), unexpected: match.NewQueue[*Message]()}
}

// Attach gives the core its net.
func (c *Core) Attach(net Net) { c.net = net }

// Pending is how many receives, messages without a receive, and requests that
// others know of there are.
func (c *Core) Pending() (receives, messages, underway int) {
	return c.posted.Len(), c.unexpected.Len(), c.requests.used
}

func (c *Core) done(r *Request, err error) {
	if r.Done {
		return
	}
	c.requests.remove(r)
	if r.exposed != nil {
		c.net.Hide(r.exposed)
		r.exposed = nil
	}
	r.finish(err)
}

// Send begins a send.
func (c *Core) Send(r *Request) {
	r.node.Item = r
	r.peer = int32(r.Dest)
	r.Bytes = len(r.Buf)
	if r.Dest == c.rank {
		c.sendSelf(r)
		return
	}
	p := &c.peers[r.Dest]
	if p.lost != nil {
		c.done(r, p.lost)
		return
	}
	limits := c.net.Limits(r.Dest)
	h := envelope.Header{Context: r.Envelope.Context, Tag: r.Envelope.Tag, Length: uint64(len(r.Buf)),
		Source: uint32(c.rank), Seq: p.seq, Kind: envelope.Eager}
	if len(r.Buf) <= limits.Eager {
		c.Stats.Eager++
		h.Bytes = uint32(len(r.Buf))
		if r.Sync {
			c.requests.add(r)
			h.ID, h.Flags = r.id, envelope.Synchronous
		}
		p.seq++
		if len(p.queue) == 0 && c.net.Send(r.Dest, &h, r.Buf) {
			c.sent(r)
			return
		}
		r.state = waiting
		c.enqueue(r.Dest, outgoing{h: h, r: r, op: sendBuf})
		return
	}
	c.Stats.Rendezvous++
	var o outgoing
	h.Kind = envelope.Ready
	r.state = offering
	if limits.Rdma == Fetched {
		r.state = asking
		key, exposed, err := c.net.Expose(r.Dest, r.Buf, false)
		if err != nil {
			c.done(r, err)
			return
		}
		r.exposed = exposed
		key.Put(o.key[:])
		o.n = envelope.KeySize
	} else {
		h.Flags = envelope.Copied
		if limits.Rdma == Stored {
			h.Flags = envelope.Place
		}
	}
	p.seq++
	c.requests.add(r)
	h.ID, h.Bytes = r.id, uint32(o.n)
	o.h = h
	c.push(r.Dest, &o)
}

// sent is the end of an eager send.
func (c *Core) sent(r *Request) {
	if r.Sync {
		r.state = asking
		return
	}
	c.done(r, nil)
}

// push sends a packet, or makes it wait its turn.
func (c *Core) push(to int, o *outgoing) {
	p := &c.peers[to]
	if p.lost != nil {
		return
	}
	if len(p.queue) > 0 || !c.try(to, o) {
		c.enqueue(to, *o)
	}
}

func (c *Core) enqueue(to int, o outgoing) {
	c.Stats.Stalled++
	p := &c.peers[to]
	p.queue = append(p.queue, o)
}

// try carries out one outgoing packet, and reports whether that is done.
func (c *Core) try(to int, o *outgoing) bool {
	switch o.op {
	case sendKey:
		return c.net.Send(to, &o.h, o.key[:o.n])
	case sendRaw:
		return c.net.Send(to, &o.h, o.raw)
	case sendBuf:
		if !c.net.Send(to, &o.h, o.r.Buf) {
			return false
		}
		c.sent(o.r)
		return true
	case fetch, store:
		var key envelope.Key
		if key.Get(o.key[:]) != nil {
			return true
		}
		move := c.net.Fetch
		if o.op == store {
			move = c.net.Store
		}
		if err := move(to, o.r.Buf[:o.r.Bytes], key, o.r.id); err == ErrNoRoom {
			return false
		} else if err != nil {
			c.done(o.r, err)
			return true
		} else if o.op == fetch {
			return true
		}
		c.push(to, &outgoing{h: c.header(envelope.Finish, o.r.to)}) // behind it
		return true
	}
	// sendParts
	r, limit := o.r, uint64(c.net.Limits(to).Eager)
	for r.offset < uint64(r.Bytes) {
		n := min(uint64(r.Bytes)-r.offset, limit)
		h := envelope.Header{Kind: envelope.Data, Source: uint32(c.rank), ID: r.to, Length: r.offset, Bytes: uint32(n)}
		if !c.net.Send(to, &h, r.Buf[r.offset:r.offset+n]) {
			return false
		}
		r.offset += n
	}
	c.done(r, nil)
	return true
}

// Resume goes on with what waits for room on the way to a rank.
func (c *Core) Resume(rank int) {
	p := &c.peers[rank]
	i := 0
	for i < len(p.queue) && c.try(rank, &p.queue[i]) {
		i++
	}
	if i > 0 {
		n := copy(p.queue, p.queue[i:])
		clear(p.queue[n:])
		p.queue = p.queue[:n]
	}
}

// Active sends a packet to the Handler of a rank, behind all messages that
// were sent before. The payload is the Core's from now on, and at most
// Limits.Eager bytes long.
func (c *Core) Active(to int, h envelope.Header, payload []byte) error {
	p := &c.peers[to]
	if p.lost != nil {
		return p.lost
	}
	h.Kind, h.Source, h.Seq, h.Bytes = envelope.Active, uint32(c.rank), p.seq, uint32(len(payload))
	p.seq++
	if to == c.rank {
		c.peers[to].next++
		if c.Handler != nil {
			return c.Handler(to, &h, payload)
		}
		return nil
	}
	c.push(to, &outgoing{h: h, raw: payload, op: sendRaw})
	return nil
}

// Lost says that a rank cannot be reached any more. Whatever waits for it
// fails, and what it has sent and is complete stays.
func (c *Core) Lost(rank int, why error) {
	p := &c.peers[rank]
	if p.lost != nil {
		return
	}
	p.lost = fmt.Errorf("%w: rank %d: %w", ErrLost, rank, why)
	for i := range p.queue {
		if r := p.queue[i].r; r != nil {
			c.done(r, p.lost)
		}
	}
	p.queue, p.early = nil, nil
	for i := range c.requests.slots {
		if r := c.requests.slots[i].r; r != nil && int(r.peer) == rank {
			c.done(r, p.lost)
		}
	}
	c.posted.Each(func(n *match.Node[*Request]) bool {
		if n.Item.from(rank) {
			c.posted.Remove(n)
			c.done(n.Item, p.lost)
		}
		return true
	})
	c.unexpected.Each(func(n *match.Node[*Message]) bool {
		if n.Envelope.Source == int32(rank) && n.Item.kind == envelope.Ready {
			c.unexpected.Remove(n)
		}
		return true
	})
}

// LostBecause is why a rank is lost, nil if it is not.
func (c *Core) LostBecause(rank int) error { return c.peers[rank].lost }

// Hopeless says why a receive, or a probe, might wait for ever: a rank that it
// can have its message from is lost. Among is as in Request.
func (c *Core) Hopeless(e match.Envelope, among []int) error {
	r := Request{Envelope: e, Among: among}
	for rank := range c.peers {
		if err := c.peers[rank].lost; err != nil && r.from(rank) {
			return err
		}
	}
	return nil
}
