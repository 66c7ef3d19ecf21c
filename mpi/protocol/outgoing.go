package protocol

import "github.com/softrnic/softrnic/mpi/envelope"

// outgoing is something that is to leave for a rank, or waits for room on the
// way to it.
type outgoing struct {
	op     op
	kind   envelope.Kind // of an answer
	r      *Request
	id     uint64 // of an answer: the request at the other end
	active *stalled
}

// stalled is an Active packet that waits.
type stalled struct {
	h       envelope.Header
	payload []byte
}

type op uint8

const (
	message op = iota // a send begins
	store             // a send's memory is written
	stream            // a send's memory leaves in packets
	fetch             // a receive's memory is read
	clearTo           // a receive asks for its message
	answer            // a packet without payload about a request of the other rank
	throttle
	active
	put // one-sided
	putNotify
	get
	atomic
)

// push lets something leave, or makes it wait its turn.
func (c *Core) push(to int, o outgoing) {
	p := &c.peers[to]
	if p.lost != nil {
		if o.r != nil {
			c.done(o.r, p.lost)
		}
		return
	}
	if o.r != nil {
		o.r.state = queued
	}
	if p.queue.Len() > 0 || !c.leaves(to, o) {
		c.Stats.Stalled++
		p.queue.Push(o)
	}
}

// leaves carries out one outgoing thing, and reports whether that is done.
func (c *Core) leaves(to int, o outgoing) bool {
	switch o.op {
	case message:
		return c.sendMessage(to, o.r)
	case store:
		return c.sendStored(to, o.r)
	case stream:
		return c.sendParts(to, o.r)
	case fetch:
		return c.fetch(to, o.r)
	case clearTo:
		return c.sendClear(to, o.r)
	case answer:
		return c.send(to, c.begin(o.kind, o.id), nil)
	case throttle:
		return c.sendThrottle(to)
	case active:
		return c.sendActive(to, &o.active.h, o.active.payload)
	}
	return c.move(to, o)
}

// Resume goes on with what waits for room on the way to a rank.
func (c *Core) Resume(rank int) {
	l := late{f: (*Core).resume, rank: rank}
	if c.postpone(l) {
		return
	}
	c.enter()
	defer c.leave()
	c.resume(l)
}

func (c *Core) resume(l late) {
	rank, p := l.rank, &c.peers[l.rank]
	for p.lost == nil && p.queue.Len() > 0 {
		o := *p.queue.Front()
		before := uint64(0)
		if o.r != nil {
			before = o.r.offset
		}
		if c.leaves(rank, o) {
			if p.queue.Pop().op == active {
				p.actives--
			}
			continue
		}
		if o.r != nil && o.r.offset != before { // a long message lets others pass
			p.queue.Push(p.queue.Pop())
		}
		return
	}
	if p.lostOnceSent != nil {
		c.Lost(rank, p.lostOnceSent)
	}
}

// send sends a packet, and reports whether there was room. The net may have found
// out just now that the rank is lost: then what is under way fails by itself.
func (c *Core) send(to int, h *envelope.Header, payload []byte) bool {
	return c.peers[to].lost == nil && c.net.Send(to, h, payload)
}

// sendThrottle tells a rank whether to announce its messages.
func (c *Core) sendThrottle(to int) bool {
	p := &c.peers[to]
	h := c.begin(envelope.Throttle, 0)
	h.Seq = p.told + 1
	if p.holding {
		h.Length = 1
	}
	if !c.send(to, h, nil) {
		return false
	}
	p.told++
	return true
}

// throttled is told by a rank whether to announce our messages to it.
func (c *Core) throttled(from int, h *envelope.Header) {
	p := &c.peers[from]
	if int32(h.Seq-p.heard) > 0 { // and no older than the last
		p.heard, p.announces = h.Seq, h.Length == 1
	}
}
