package nack

// Handle handles a packet of a peer: the caller knows by Header.From, and by where
// it came from, that it is this one's. Messages that are complete by it are given
// to deliver, one by one; they are the Core's again when that returns. It may call
// all methods but Handle. The result says why the packet was not heeded, if so.
func (c *Core) Handle(now Time, number int, packet []byte, deliver func(message []byte)) Drop {
	d := c.handle(now, number, packet, deliver)
	c.Stats.Dropped[d]++
	return d
}

func (c *Core) handle(now Time, number int, packet []byte, deliver func([]byte)) Drop {
	var h Header
	if !h.Get(packet) {
		return DropMalformed
	}
	if h.Kind == Data && int64(h.Length) > int64(c.o.MaxMessage) {
		return DropTooLong
	}
	p := c.peer(number)
	d := c.admit(p, &h)
	if d == DropNone && h.Kind != Hello {
		d = c.heed(now, p, &h, h.Kind == Ack || h.Kind == Nack)
	}
	if d == DropNone {
		p.in.last = now
		switch h.Kind {
		case Data:
			d = c.data(now, p, &h, packet[DataSize:], deliver)
		case Ask:
			d = p.asked(&h)
		case Hello:
			p.owe.ack = true
		case Nack:
			c.Stats.NacksHeard++
		}
	}
	c.settle(now, p)
	return d
}

// admit looks whether a packet is of the peer's life that we know, or of a newer
// one, and meant for ours.
func (c *Core) admit(p *peer, h *Header) Drop {
	switch {
	case h.To != c.o.Epoch && h.Kind != Hello:
		if after(c.o.Epoch, h.To) && (p.epoch == 0 || !after(p.epoch, h.Epoch)) {
			p.owe.hello = true // it means an earlier life of ours, and should know
		}
		return DropNotUs
	case p.epoch == 0:
		p.epoch = h.Epoch
	case after(h.Epoch, p.epoch):
		c.restart(p, h.Epoch)
	case h.Epoch != p.epoch:
		return DropOldEpoch
	case p.gone:
		return DropGone
	}
	return DropNone
}

// settle lets a peer go on after something about it has changed.
func (c *Core) settle(now Time, p *peer) {
	if p.waiting && p.open && !p.gone {
		switch {
		case p.epoch == 0 && p.out.askAt == 0:
			p.owe.ask = true
			p.out.progress, p.out.askAt = now, now+p.out.patience()
		case p.epoch != 0 && p.out.room(int(p.need)):
			p.waiting = false
			c.events.Push(Event{Peer: p.number, Kind: Writable})
		}
	}
	c.activate(p)
	c.timers.set(p, c.deadline(p))
}
