package nack

// handleData handles a Data packet.
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
		p.control.ack = true // its acknowledgement seems to be lost
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

// acceptSegment appends the next fragment in order to the message, and delivers
// the message when complete. It reports whether the fragment is consistent with
// the earlier ones; if not, no state changes.
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
	buffer := r.partial // nil for a message of one packet
	r.partial, r.messageLen = nil, 0
	c.Stats.Delivered++
	deliver(message)
	c.freeBuffer(buffer)
	return true
}

// bufferOutOfOrder buffers a packet that arrived ahead of missing ones.
func (c *Core) bufferOutOfOrder(now Time, p *peer, h *Header, payload []byte) Drop {
	r := &p.in
	if seqAfter(h.Seq, r.knownSent) {
		p.control.nack = true // a new gap; packets still missing later are requested after a probe
	}
	if seqAfter(h.Seq+1, r.knownSent) {
		r.knownSent = h.Seq + 1
	}
	p.delayAck(now + Time(c.o.AckDelay))
	if c.reorderBytes+len(payload) > c.o.ReorderBytes {
		return DropNoMemory // without noteTxNum: retransmissions of others would be out of order again
	}
	r.noteTxNum(h.TxNum)
	b := c.ensureReorderBuffer(p)
	b.held |= seqBit(h.Seq)
	b.packet[slotIndex(h.Seq)] = bufferedPacket{h.Flags, h.Length, append(c.allocBuffer(), payload...)}
	c.reorderBytes += len(payload)
	c.Stats.OutOfOrder++
	return DropNone
}

// popBuffered removes a packet from a reorder buffer.
func (c *Core) popBuffered(b *reorderBuffer, at uint32) bufferedPacket {
	e := b.packet[at]
	b.packet[at] = bufferedPacket{}
	b.held &^= 1 << at
	c.reorderBytes -= len(e.payload)
	return e
}

// handleProbe schedules the acknowledgement that a probe requests.
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

// delayAck schedules a delayed acknowledgement, unless one is scheduled.
func (p *peer) delayAck(at Time) {
	if p.control.ackAt == 0 {
		p.control.ackAt = at
	}
}
