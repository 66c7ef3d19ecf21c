package nack

import "github.com/softrnic/softrnic/wire"

// Packet is what is to leave for a peer.
type Packet struct {
	Peer  int
	Slot  int // that Bytes lies in, until Done; -1: in the Packet itself
	At    int // where it begins in Options.Memory
	Bytes []byte

	// Solicited: it should leave with a solicited event, because it is of a
	// message that wants that, or because its receiver has let it wait: it asks,
	// or leaves again.
	Solicited bool

	small [FeedbackSize]byte
}

// Drain takes up to len(out) packets that are to leave now, and returns how many.
// Bytes must not be written to, and is the caller's until Done or, without a Slot,
// until out is used again.
func (c *Core) Drain(now Time, out []Packet) (n int) {
	for turns := c.active.Len(); turns > 0 && n < len(out); turns-- {
		p := c.active.Pop()
		p.active = false
		n += c.leave(now, p, out[n:])
		c.activate(p)
		c.timers.set(p, c.deadline(p))
	}
	return n
}

// Done says that a packet that Drain gave out has left, or never will, and its
// slot may be written to again.
func (c *Core) Done(slot int) {
	if slot < 0 {
		return
	}
	i := int32(slot)
	c.slots.clear(i, posted)
	if c.slots.state[i] != 0 { // it may have to leave again
		c.activate(c.peers[c.slots.owner[i]])
	}
}

// activate notes that a peer has something to send, if it has.
func (c *Core) activate(p *peer) {
	if p.active || !p.open {
		return
	}
	wants := p.owe != owed{at: p.owe.at}
	if !wants && !p.gone {
		_, wants = c.ready(p)
	}
	if wants {
		p.active = true
		c.active.Push(p)
	}
}

// leave lets packets to a peer leave: what it has to be told of comes behind
// messages, which may have told it.
func (c *Core) leave(now Time, p *peer, out []Packet) (n int) {
	if p.owe.hello || p.owe.ask && p.epoch == 0 {
		p.owe.hello, p.owe.ask = false, p.owe.ask && p.epoch != 0
		c.control(p, &out[0], Header{Kind: Hello})
		out[0].Solicited = true
		c.Stats.Asks++
		n++
	}
	for ; n < min(len(out), quota) && p.epoch != 0; n++ {
		seq, ok := c.ready(p)
		if !ok {
			break
		}
		c.transmit(now, p, seq, &out[n])
	}
	if p.owe.ask && n < len(out) {
		c.ask(now, p, &out[n])
		n++
	}
	if (p.owe.ack || p.owe.nack) && n < len(out) {
		if p.owe.nack = p.owe.nack && p.in.missing(); p.owe.ack || p.owe.nack {
			c.acknowledge(p, &out[n])
			n++
		}
	}
	return n
}

// ask asks a peer what has come.
func (c *Core) ask(now Time, p *peer, out *Packet) {
	p.owe.ask = false
	p.out.rtt.Sent(now, wire.PSN(p.out.order&wire.PSNMask))
	c.Stats.Asks++
	c.control(p, out, Header{Kind: Ask, To: p.epoch, Seq: p.out.fresh, Ack: p.in.expected, Order: p.out.order, Echo: p.in.seen})
	out.Solicited = true
	p.out.order++
	p.covered()
}

// acknowledge tells a peer what has come.
func (c *Core) acknowledge(p *peer, out *Packet) {
	h := Header{Kind: Ack, To: p.epoch, Ack: p.in.expected, Have: p.in.have(), Echo: p.in.seen}
	if p.in.missing() {
		h.Kind = Nack
		c.Stats.Nacks++
	} else {
		c.Stats.Acks++
	}
	c.control(p, out, h)
	p.owe.ack, p.owe.nack, p.owe.at = false, false, 0
}

func (c *Core) control(p *peer, out *Packet, h Header) {
	h.From, h.Epoch = c.o.Self, c.o.Epoch
	*out = Packet{Peer: p.number, Slot: -1}
	out.Bytes = out.small[:h.Put(out.small[:])]
}

// covered notes that a packet has told the peer what came in a row. Whatever
// else there is to be said of what came has to be said by itself.
func (p *peer) covered() {
	if !p.in.missing() {
		p.owe.ack, p.owe.nack, p.owe.at = false, false, 0
	}
}
