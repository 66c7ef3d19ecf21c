package nack

// handleData takes a piece of a message.
func (c *Core) handleData(now Time, p *peer, h *Header, payload []byte, deliver func([]byte)) Drop {
	r := &p.in
	ahead := int32(h.Seq - r.expected)
	if ahead >= Window {
		return DropTooFar
	}
	p.control.ack = p.control.ack || h.Flags&AckRequested != 0
	switch {
	case ahead < 0 || ahead > 0 && r.reorder != nil && r.reorder.held&seqBit(h.Seq) != 0:
		r.noteTxNum(h.TxNum)
		p.control.ack = true // it seems not to know
		return DropDuplicate
	case ahead > 0:
		return c.bufferOutOfOrder(now, p, h, payload)
	}
	r.noteTxNum(h.TxNum)
	if !c.acceptSegment(p, h.Flags, h.Length, payload, deliver) {
		return DropInconsistent
	}
	for !p.closed && r.reorder != nil && r.reorder.held&seqBit(r.expected) != 0 {
		e := c.popBuffered(r.reorder, slotIndex(r.expected))
		ok := c.acceptSegment(p, e.flags, e.length, e.payload, deliver)
		c.freeBuffer(e.payload)
		if !ok {
			c.Stats.ProtocolErrors++
			c.closePeer(p)
			c.events.Push(Event{Peer: p.number, Kind: ProtocolError})
			return DropInconsistent
		}
	}
	if p.closed {
		return DropNone
	}
	if r.reorder != nil && r.reorder.held == 0 {
		c.freeReorderBuffer(p)
	}
	p.delayAck(now + Time(c.o.AckDelay))
	return DropNone
}

// acceptSegment takes the piece whose turn it is. It reports whether it fits what came
// before; if not nothing has changed.
func (c *Core) acceptSegment(p *peer, flags Flags, length uint32, payload []byte, deliver func([]byte)) bool {
	r := &p.in
	begin, end := flags&First != 0, flags&Last != 0
	total := len(r.partial) + len(payload)
	if begin != (r.messageLen == 0) || !begin && length != r.messageLen || total > int(length) || end != (total == int(length)) {
		return false
	}
	message := payload
	if !begin || !end {
		if begin {
			r.partial, r.messageLen = c.allocBuffer(), length
		}
		r.partial = append(r.partial, payload...)
		message = r.partial
	}
	if r.expected++; seqAfter(r.expected, r.knownSent) {
		r.knownSent = r.expected
	}
	if !end {
		return true
	}
	whole := r.partial // nil if it came in one piece
	r.partial, r.messageLen = nil, 0
	c.Stats.Delivered++
	deliver(message)
	c.freeBuffer(whole)
	return true
}

// bufferOutOfOrder keeps a packet that came before others.
func (c *Core) bufferOutOfOrder(now Time, p *peer, h *Header, payload []byte) Drop {
	r := &p.in
	if seqAfter(h.Seq, r.knownSent) {
		p.control.nack = true // a gap that is new: later ones are asked for when the sender asks
	}
	if seqAfter(h.Seq+1, r.knownSent) {
		r.knownSent = h.Seq + 1
	}
	p.delayAck(now + Time(c.o.AckDelay))
	if c.reorderBytes+len(payload) > c.o.ReorderBytes {
		return DropNoMemory // and not a sign that others are lost: they would come too early again
	}
	r.noteTxNum(h.TxNum)
	b := c.ensureReorderBuffer(p)
	b.held |= seqBit(h.Seq)
	b.packet[slotIndex(h.Seq)] = bufferedPacket{h.Flags, h.Length, append(c.allocBuffer(), payload...)}
	c.reorderBytes += len(payload)
	c.Stats.OutOfOrder++
	return DropNone
}

// popBuffered takes a packet out of an inbox.
func (c *Core) popBuffered(b *reorderBuffer, at uint32) bufferedPacket {
	e := b.packet[at]
	b.packet[at] = bufferedPacket{}
	b.held &^= 1 << at
	c.reorderBytes -= len(e.payload)
	return e
}

// handleProbe is told how much has been sent.
func (p *peer) handleProbe(h *Header) Drop {
	if int32(h.Seq-p.in.expected) > Window {
		return DropTooFar
	}
	p.in.noteTxNum(h.TxNum)
	if seqAfter(h.Seq, p.in.knownSent) {
		p.in.knownSent = h.Seq
	}
	p.control.ack = true
	return DropNone
}

// delayAck makes an acknowledgement due at a time, unless one is before.
func (p *peer) delayAck(at Time) {
	if p.control.ackAt == 0 {
		p.control.ackAt = at
	}
}
