package nack

// HandlePacket handles a packet of a peer. The caller has identified the peer
// by Header.From and by the source address. deliver gets the messages that the
// packet completes, one by one; their memory is valid until deliver returns.
// deliver may call all methods except HandlePacket. The result is the reason if
// the packet was dropped.
func (c *Core) HandlePacket(now Time, number int, packet []byte, deliver func(message []byte)) Drop {
	d := c.handlePacket(now, number, packet, deliver)
	c.Stats.Dropped[d]++
	return d
}

func (c *Core) handlePacket(now Time, number int, packet []byte, deliver func([]byte)) Drop {
	var h Header
	if !h.Parse(packet) {
		return DropMalformed
	}
	if h.Kind == Data && int64(h.Length) > int64(c.o.MaxMessage) {
		return DropTooLong
	}
	p := c.getPeer(number)
	d := c.checkEpochs(p, &h)
	if d == DropNone && h.Kind != Hello {
		d = c.handleAck(now, p, &h, h.Kind == Ack || h.Kind == Nack)
	}
	if d == DropNone {
		p.in.lastRecv = now
		switch h.Kind {
		case Data:
			d = c.handleData(now, p, &h, packet[DataSize:], deliver)
		case Probe:
			d = p.handleProbe(&h)
		case Hello:
			p.control.ack = true
		case Nack:
			c.Stats.NacksReceived++
		}
	}
	c.reschedule(now, p)
	return d
}

// checkEpochs checks that a packet comes from the current or a newer
// incarnation of the peer and is addressed to this incarnation.
func (c *Core) checkEpochs(p *peer, h *Header) Drop {
	switch {
	case h.To != c.o.Epoch && h.Kind != Hello:
		if seqAfter(c.o.Epoch, h.To) && (p.epoch == 0 || !seqAfter(p.epoch, h.Epoch)) {
			p.control.hello = true // the peer addresses an earlier incarnation: announce this one
		}
		return DropStaleDestination
	case p.epoch == 0:
		p.epoch = h.Epoch
	case seqAfter(h.Epoch, p.epoch):
		c.restartPeer(p, h.Epoch)
	case h.Epoch != p.epoch:
		return DropOldEpoch
	case p.closed:
		return DropPeerClosed
	}
	return DropNone
}

// reschedule resumes a peer after its state has changed.
func (c *Core) reschedule(now Time, p *peer) {
	if p.blocked && p.open && !p.closed {
		switch {
		case p.epoch == 0 && p.out.probeAt == 0:
			p.control.probe = true
			p.out.lastProgress, p.out.probeAt = now, now+p.out.probeInterval()
		case p.epoch != 0 && p.out.hasRoom(int(p.needed)):
			p.blocked = false
			c.events.Push(Event{Peer: p.number, Kind: Writable})
		}
	}
	c.markActive(p)
	c.timers.SetEarlier(&p.timer, p, c.peerDeadline(p))
}
