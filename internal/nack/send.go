package nack

import (
	"encoding/binary"

	memory "github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/wire"
)

// Send queues a message, the concatenation of head and body, as packets of the
// peer's MTU. The message is copied; Drain returns the packets. If it returns
// ErrWouldBlock, nothing was queued, and an Event of kind Writable follows when
// there is room. If it returns ErrFault, nothing was queued.
func (c *Core) Send(now Time, to int, head, body []byte) error {
	return c.sendMessage(now, to, head, body, 0)
}

// SendSolicited is like Send, but the last packet raises a solicited event,
// which wakes a receiver that waits for one.
func (c *Core) SendSolicited(now Time, to int, head, body []byte) error {
	return c.sendMessage(now, to, head, body, Solicited)
}

func (c *Core) sendMessage(now Time, to int, head, body []byte, last Flags) error {
	p := c.getPeer(to)
	s := &p.out
	n := len(head) + len(body)
	pieces := s.packetCount(n)
	switch {
	case p.closed:
		return ErrPeerClosed
	case n > c.o.MaxMessage || pieces > min(c.o.Slots, maxPackets):
		return ErrTooLong
	case !p.open || p.epoch == 0 || !s.hasRoom(pieces):
		p.blocked, p.needed = true, uint8(pieces)
		c.reschedule(now, p)
		return ErrWouldBlock
	case pieces > len(c.slots.free):
		p.needed = uint8(pieces)
		if !p.slotStarved {
			p.slotStarved = true
			c.slotWaiters.Push(p)
		}
		return ErrWouldBlock
	}
	p.blocked, p.slotStarved = false, false
	if pieces > 1 || DataSize+n > c.o.Short {
		if err := c.slots.ensureMemory(pieces); err != nil {
			return err
		}
	}
	c.Stats.Sent++
	r := c.ensureSendRing(p)
	h := Header{Kind: Data, Flags: First, From: c.o.Self, Epoch: c.o.Epoch, To: p.epoch, Length: uint32(n)}
	first := s.nextQueue
	for left := n; pieces > 0; pieces-- {
		payload := min(left, s.fragmentSize())
		left -= payload
		if pieces == 1 {
			h.Flags |= Last | last
		}
		h.Seq = s.nextQueue
		slot := c.slots.alloc(p.number, DataSize+payload)
		b := c.slots.packetBytes(slot)
		b = b[h.Put(b):]
		k := copy(b, head)
		m := min(len(b)-k, len(body))
		if !memory.Load(b[k:k+m], body[:m]) {
			c.slots.release(slot, retained)
			c.undoSend(p, first)
			return ErrFault
		}
		head, body = head[k:], body[m:]
		r.slot[slotIndex(s.nextQueue)] = slot
		s.nextQueue++
		h.Flags = 0
	}
	c.markActive(p)
	return nil
}

// undoSend frees the packets from seq on of a message whose memory could not be
// read. None of them has been sent.
func (c *Core) undoSend(p *peer, seq uint32) {
	s := &p.out
	for i := seq; i != s.nextQueue; i++ {
		c.slots.release(s.ring.slot[slotIndex(i)], retained)
	}
	s.nextQueue = seq
	c.Stats.Sent--
}

// nextReady returns the sequence number of the next packet that may be sent: a
// retransmission or a new packet.
func (c *Core) nextReady(p *peer) (seq uint32, ok bool) {
	s := &p.out
	if s.ring == nil {
		return 0, false
	}
	seq = s.nextSend
	for set := rotateSet(s.ring.lost, s.una); set != 0; set &= set - 1 {
		lostSeq := s.una + lowestBit(set)
		if c.slots.state[s.ring.slot[slotIndex(lostSeq)]]&posted == 0 {
			seq = lostSeq
			break
		}
	}
	if seq == s.nextQueue {
		return 0, false
	}
	return seq, s.window.Allows(s.inFlight, windowCost(int(c.slots.length[s.ring.slot[slotIndex(seq)]])))
}

// transmitData writes packet seq to out and updates the send state.
func (c *Core) transmitData(now Time, p *peer, seq uint32, out *Packet) {
	s := &p.out
	i := s.ring.slot[slotIndex(seq)]
	b := c.slots.packetBytes(i)
	if !s.hasUnacked() {
		s.lastProgress = now
	}
	retransmitted := false
	if seq == s.nextSend {
		s.nextSend++
		c.Stats.Packets++
	} else {
		retransmitted = true
		s.ring.lost &^= seqBit(seq)
		c.Stats.Retransmitted++
	}
	s.ring.txNum[slotIndex(seq)] = s.txNum
	s.inFlight += windowCost(len(b))
	flags := Flags(b[2]) &^ AckRequested
	if c.wantsAck(s) {
		flags |= AckRequested
		s.sinceAckRequest = 0
	}
	s.rtt.OnSent(now, wire.PSN(s.txNum&wire.PSNMask))
	b[2] = byte(flags)
	be := binary.BigEndian
	be.PutUint32(b[20:], p.in.expected)
	be.PutUint32(b[24:], s.txNum)
	be.PutUint32(b[28:], p.in.maxTxNum)
	s.txNum++
	if s.probeAt == 0 {
		s.probeAt = now + s.probeInterval()
	}
	p.clearPiggybackedAck()
	c.slots.state[i] |= posted
	slab, at := c.slots.position(i)
	*out = Packet{Peer: p.number, Slot: int(i), Slab: slab, At: at, Bytes: b, Solicited: retransmitted || flags&Solicited != 0}
}

// wantsAck reports whether the next packet should request an acknowledgement:
// every ackRequestEvery-th one, the last one that fits in a window, and all
// when slots are scarce.
func (c *Core) wantsAck(s *sendState) bool {
	s.sinceAckRequest++
	return s.sinceAckRequest >= ackRequestEvery || len(c.slots.free) < len(c.slots.state)/4 ||
		s.nextQueue == s.una+Window && s.nextSend == s.nextQueue || !s.window.Allows(s.inFlight, windowCost(int(s.mtu)))
}
