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
		n += c.drainPeer(now, p, out[n:])
		c.markActive(p)
		c.timers.schedule(p, c.peerDeadline(p))
	}
	return n
}

// ReleaseSlot says that a packet that Drain gave out has left, or never will, and its
// slot may be written to again.
func (c *Core) ReleaseSlot(slot int) {
	if slot < 0 {
		return
	}
	i := int32(slot)
	c.slots.release(i, posted)
	if c.slots.state[i] != 0 { // it may have to leave again
		c.markActive(c.peers[c.slots.owner[i]])
	}
}

// markActive notes that a peer has something to send, if it has.
func (c *Core) markActive(p *peer) {
	if p.active || !p.open {
		return
	}
	wants := p.control != pendingControl{ackAt: p.control.ackAt}
	if !wants && !p.closed {
		_, wants = c.nextReady(p)
	}
	if wants {
		p.active = true
		c.active.Push(p)
	}
}

// drainPeer lets packets to a peer leave: what it has to be told of comes behind
// messages, which may have told it.
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

// sendProbe asks a peer what has come.
func (c *Core) sendProbe(now Time, p *peer, out *Packet) {
	p.control.probe = false
	p.out.rtt.OnSent(now, wire.PSN(p.out.txNum&wire.PSNMask))
	c.Stats.Probes++
	c.putControl(p, out, Header{Kind: Probe, To: p.epoch, Seq: p.out.nextSend, Ack: p.in.expected, TxNum: p.out.txNum, TxEcho: p.in.maxTxNum})
	out.Solicited = true
	p.out.txNum++
	p.clearPiggybackedAck()
}

// sendAck tells a peer what has come.
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

// clearPiggybackedAck notes that a packet has told the peer what came in a row. Whatever
// else there is to be said of what came has to be said by itself.
func (p *peer) clearPiggybackedAck() {
	if !p.in.hasGap() {
		p.control.ack, p.control.nack, p.control.ackAt = false, false, 0
	}
}
