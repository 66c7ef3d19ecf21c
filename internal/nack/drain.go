package nack

import "github.com/softrnic/softrnic/wire"

// A Packet is a packet to send to a peer.
type Packet struct {
	Peer  int
	Slot  int // slot of Bytes, in use until ReleaseSlot; -1: Bytes is in the Packet itself
	Slab  int // number of the slab, 0 with Options.Memory; -1: Bytes lies in no slab (Options.Short)
	At    int // offset of Bytes in the slab, or in Options.Memory
	Bytes []byte

	// Solicited reports that the packet should be sent with a solicited event:
	// it ends a message of SendSolicited, or it is a probe or a retransmission,
	// for which the sender waits.
	Solicited bool

	small [FeedbackSize]byte
}

// Drain fills out with packets to send now and returns their number. The caller
// must not modify Bytes, and may read them until ReleaseSlot or, without a
// slot, until it reuses out.
func (c *Core) Drain(now Time, out []Packet) (n int) {
	for turns := c.active.Len(); turns > 0 && n < len(out); turns-- {
		p := c.active.Pop()
		p.active = false
		n += c.drainPeer(now, p, out[n:])
		c.markActive(p)
		c.timers.SetEarlier(&p.timer, p, c.peerDeadline(p))
	}
	return n
}

// ReleaseSlot reports that a packet returned by Drain was sent or dropped, so
// that its slot may be modified.
func (c *Core) ReleaseSlot(slot int) {
	if slot < 0 {
		return
	}
	i := int32(slot)
	c.slots.release(i, posted)
	if c.slots.state[i] != 0 { // it may be due for retransmission
		c.markActive(c.peers.Find(int(c.slots.owner[i])))
	}
}

// markActive queues p for Drain if it has packets to send.
func (c *Core) markActive(p *peer) {
	if p.active || !p.open {
		return
	}
	pending := p.control != pendingControl{ackAt: p.control.ackAt}
	if !pending && !p.closed {
		_, pending = c.nextReady(p)
	}
	if pending {
		p.active = true
		c.active.Push(p)
	}
}

// drainPeer writes packets for p to out. Acknowledgements follow data, which
// may carry them.
func (c *Core) drainPeer(now Time, p *peer, out []Packet) (n int) {
	if p.control.hello || p.control.probe && p.epoch == 0 {
		p.control.hello, p.control.probe = false, p.control.probe && p.epoch != 0
		c.putControl(p, &out[0], Header{Kind: Hello})
		out[0].Solicited = true
		c.Stats.Probes++
		n++
	}
	for ; n < min(len(out), sendQuota) && p.epoch != 0; n++ {
		seq, ok := c.nextReady(p)
		if !ok {
			break
		}
		c.transmitData(now, p, seq, &out[n])
	}
	if p.control.probe && n < len(out) {
		c.sendProbe(now, p, &out[n])
		n++
	}
	if (p.control.ack || p.control.nack) && n < len(out) {
		if p.control.nack = p.control.nack && p.in.hasGap(); p.control.ack || p.control.nack {
			c.sendAck(p, &out[n])
			n++
		}
	}
	return n
}

// sendProbe writes a probe that requests the receive state of p.
func (c *Core) sendProbe(now Time, p *peer, out *Packet) {
	p.control.probe = false
	p.out.rtt.OnSent(now, wire.PSN(p.out.txNum&wire.PSNMask))
	c.Stats.Probes++
	c.putControl(p, out, Header{Kind: Probe, To: p.epoch, Seq: p.out.nextSend, Ack: p.in.expected, TxNum: p.out.txNum, TxEcho: p.in.maxTxNum})
	out.Solicited = true
	p.out.txNum++
	p.clearPiggybackedAck()
}

// sendAck writes an acknowledgement, or a NACK if packets are missing.
func (c *Core) sendAck(p *peer, out *Packet) {
	h := Header{Kind: Ack, To: p.epoch, Ack: p.in.expected, Sack: p.in.sackBits(), TxEcho: p.in.maxTxNum}
	if p.in.hasGap() {
		h.Kind = Nack
		c.Stats.Nacks++
	} else {
		c.Stats.Acks++
	}
	c.putControl(p, out, h)
	p.control.ack, p.control.nack, p.control.ackAt = false, false, 0
}

func (c *Core) putControl(p *peer, out *Packet, h Header) {
	h.From, h.Epoch = c.o.Self, c.o.Epoch
	*out = Packet{Peer: p.number, Slot: -1}
	out.Bytes = out.small[:h.Put(out.small[:])]
}

// clearPiggybackedAck clears the pending acknowledgement after a packet has
// carried the cumulative one. Missing packets still need a NACK of their own.
func (p *peer) clearPiggybackedAck() {
	if !p.in.hasGap() {
		p.control.ack, p.control.nack, p.control.ackAt = false, false, 0
	}
}
