package nack

// data takes a piece of a message.
func (c *Core) data(now Time, p *peer, h *Header, payload []byte, deliver func([]byte)) Drop {
	r := &p.in
	ahead := int32(h.Seq - r.expected)
	if ahead >= Window {
		return DropTooFar
	}
	p.owe.ack = p.owe.ack || h.Flags&Answer != 0
	switch {
	case ahead < 0 || ahead > 0 && r.inbox != nil && r.inbox.held&bit(h.Seq) != 0:
		r.heard(h.Order)
		p.owe.ack = true // it seems not to know
		return DropDuplicate
	case ahead > 0:
		return c.hold(now, p, h, payload)
	}
	r.heard(h.Order)
	if !c.take(p, h.Flags, h.Length, payload, deliver) {
		return DropLie
	}
	for !p.gone && r.inbox != nil && r.inbox.held&bit(r.expected) != 0 {
		e := c.unhold(r.inbox, place(r.expected))
		ok := c.take(p, e.flags, e.length, e.payload, deliver)
		c.freeBuffer(e.payload)
		if !ok {
			c.Stats.Breaches++
			c.close(p)
			c.events.Push(Event{Peer: p.number, Kind: Broken})
			return DropLie
		}
	}
	if p.gone {
		return DropNone
	}
	if r.inbox != nil && r.inbox.held == 0 {
		c.freeInbox(p)
	}
	p.later(now + Time(c.o.AckDelay))
	return DropNone
}

// take takes the piece whose turn it is. It reports whether it fits what came
// before; if not nothing has changed.
func (c *Core) take(p *peer, flags Flags, length uint32, payload []byte, deliver func([]byte)) bool {
	r := &p.in
	begin, end := flags&First != 0, flags&Last != 0
	total := len(r.message) + len(payload)
	if begin != (r.length == 0) || !begin && length != r.length || total > int(length) || end != (total == int(length)) {
		return false
	}
	message := payload
	if !begin || !end {
		if begin {
			r.message, r.length = c.buffer(), length
		}
		r.message = append(r.message, payload...)
		message = r.message
	}
	if r.expected++; after(r.expected, r.known) {
		r.known = r.expected
	}
	if !end {
		return true
	}
	whole := r.message // nil if it came in one piece
	r.message, r.length = nil, 0
	c.Stats.Delivered++
	deliver(message)
	c.freeBuffer(whole)
	return true
}

// hold keeps a packet that came before others.
func (c *Core) hold(now Time, p *peer, h *Header, payload []byte) Drop {
	r := &p.in
	if after(h.Seq, r.known) {
		p.owe.nack = true // a gap that is new: later ones are asked for when the sender asks
	}
	if after(h.Seq+1, r.known) {
		r.known = h.Seq + 1
	}
	p.later(now + Time(c.o.AckDelay))
	if c.early+len(payload) > c.o.Early {
		return DropNoMemory // and not a sign that others are lost: they would come too early again
	}
	r.heard(h.Order)
	b := c.inbox(p)
	b.held |= bit(h.Seq)
	b.packet[place(h.Seq)] = early{h.Flags, h.Length, append(c.buffer(), payload...)}
	c.early += len(payload)
	c.Stats.Early++
	return DropNone
}

// unhold takes a packet out of an inbox.
func (c *Core) unhold(b *inbox, at uint32) early {
	e := b.packet[at]
	b.packet[at] = early{}
	b.held &^= 1 << at
	c.early -= len(e.payload)
	return e
}

// asked is told how much has been sent.
func (p *peer) asked(h *Header) Drop {
	if int32(h.Seq-p.in.expected) > Window {
		return DropTooFar
	}
	p.in.heard(h.Order)
	if after(h.Seq, p.in.known) {
		p.in.known = h.Seq
	}
	p.owe.ack = true
	return DropNone
}

// later makes an acknowledgement due at a time, unless one is before.
func (p *peer) later(at Time) {
	if p.owe.at == 0 {
		p.owe.at = at
	}
}
