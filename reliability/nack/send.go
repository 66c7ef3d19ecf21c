package nack

import (
	"encoding/binary"

	memory "github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/wire"
)

// Send sends a message, head and body together, which are copied: in packets of
// the peer's MTU, which leave by Drain. If it returns ErrNoRoom nothing was
// taken, and an Event follows when there is room. With ErrFault nothing was taken
// either.
func (c *Core) Send(now Time, to int, head, body []byte) error {
	return c.send(now, to, head, body, 0)
}

// SendSolicited is Send of a message whose last packet raises a solicited event: it
// wakes a receiver that sleeps until there is one.
func (c *Core) SendSolicited(now Time, to int, head, body []byte) error {
	return c.send(now, to, head, body, Wake)
}

func (c *Core) send(now Time, to int, head, body []byte, last Flags) error {
	p := c.peer(to)
	s := &p.out
	n := len(head) + len(body)
	pieces := s.pieces(n)
	switch {
	case p.gone:
		return ErrGone
	case n > c.o.MaxMessage || pieces > min(c.o.Slots, maxPieces):
		return ErrTooLong
	case !p.open || p.epoch == 0 || !s.room(pieces):
		p.waiting, p.need = true, uint8(pieces)
		c.settle(now, p)
		return ErrNoRoom
	case pieces > len(c.slots.free):
		p.need = uint8(pieces)
		if !p.starving {
			p.starving = true
			c.starved.Push(p)
		}
		return ErrNoRoom
	}
	p.waiting, p.starving = false, false
	c.Stats.Sent++
	r := c.outbox(p)
	h := Header{Kind: Data, Flags: First, From: c.o.Self, Epoch: c.o.Epoch, To: p.epoch, Length: uint32(n)}
	first := s.next
	for left := n; pieces > 0; pieces-- {
		payload := min(left, s.fragment())
		left -= payload
		if pieces == 1 {
			h.Flags |= Last | last
		}
		h.Seq = s.next
		slot := c.slots.take(p.number, DataSize+payload)
		b := c.slots.bytes(slot)
		b = b[h.Put(b):]
		k := copy(b, head)
		m := min(len(b)-k, len(body))
		if !memory.Load(b[k:k+m], body[:m]) {
			c.slots.clear(slot, kept)
			c.takeBack(p, first)
			return ErrFault
		}
		head, body = head[k:], body[m:]
		r.slot[place(s.next)] = slot
		s.next++
		h.Flags = 0
	}
	c.activate(p)
	return nil
}

// takeBack frees the packets from seq on of a message that could not be read to
// its end. They have not left.
func (c *Core) takeBack(p *peer, seq uint32) {
	s := &p.out
	for i := seq; i != s.next; i++ {
		c.slots.clear(s.ring.slot[place(i)], kept)
	}
	s.next = seq
	c.Stats.Sent--
}

// ready returns the number of the next packet that may leave: one that is to
// leave again, or a new one.
func (c *Core) ready(p *peer) (seq uint32, ok bool) {
	s := &p.out
	if s.ring == nil {
		return 0, false
	}
	seq = s.fresh
	for set := from(s.ring.lost, s.una); set != 0; set &= set - 1 {
		again := s.una + lowest(set)
		if c.slots.state[s.ring.slot[place(again)]]&posted == 0 {
			seq = again
			break
		}
	}
	if seq == s.next {
		return 0, false
	}
	return seq, s.window.Allows(s.flying, cost(int(c.slots.length[s.ring.slot[place(seq)]])))
}

// transmit lets a packet leave.
func (c *Core) transmit(now Time, p *peer, seq uint32, out *Packet) {
	s := &p.out
	i := s.ring.slot[place(seq)]
	b := c.slots.bytes(i)
	if !s.outstanding() {
		s.progress = now
	}
	again := false
	if seq == s.fresh {
		s.fresh++
		c.Stats.Packets++
	} else {
		again = true
		s.ring.lost &^= bit(seq)
		c.Stats.Resent++
	}
	s.ring.order[place(seq)] = s.order
	s.flying += cost(len(b))
	flags := Flags(b[2]) &^ Answer
	if c.wantsAnswer(s) {
		flags |= Answer
		s.unasked = 0
	}
	s.rtt.Sent(now, wire.PSN(s.order&wire.PSNMask))
	b[2] = byte(flags)
	be := binary.BigEndian
	be.PutUint32(b[20:], p.in.expected)
	be.PutUint32(b[24:], s.order)
	be.PutUint32(b[28:], p.in.seen)
	s.order++
	if s.askAt == 0 {
		s.askAt = now + s.patience()
	}
	p.covered()
	c.slots.state[i] |= posted
	*out = Packet{Peer: p.number, Slot: int(i), At: int(i) * c.slots.stride, Bytes: b, Solicited: again || flags&Wake != 0}
}

// wantsAnswer reports whether the packet that leaves is to be answered: one of
// many, the last one for which there is room, and any when slots are short.
func (c *Core) wantsAnswer(s *sending) bool {
	s.unasked++
	return s.unasked >= askEvery || len(c.slots.free) < len(c.slots.state)/4 ||
		s.next == s.una+Window && s.fresh == s.next || !s.window.Allows(s.flying, cost(int(s.mtu)))
}
