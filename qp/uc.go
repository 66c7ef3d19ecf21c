package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// uc is the unreliable connection.
type uc struct{ unreliable }

// postRequest implements transport.
func (t uc) postRequest(wr *verbs.SendWR) error { return t.postConnected(wr) }

// handlePacket implements transport.
func (t uc) handlePacket(now reliability.Time, p *wire.Packet) wire.Drop {
	if d := t.checkConnected(p); d != wire.DropNone {
		return d
	}
	if t.handleConnected(now, p) {
		return wire.DropNone
	}
	return t.handleUC(now, p)
}

// drain implements transport.
func (t uc) drain(now reliability.Time, out Out) bool {
	return t.cnpDue && !t.sendCNP(now, out) || t.sendRequests(now, out)
}

// sendPacket implements transport.
func (t uc) sendPacket(now reliability.Time, out Out, w *sendWQE) outcome {
	off := uint32(t.next.Sub(w.first)) * t.mtu
	info, o := t.buildData(now, out, w, off, min(t.mtu, w.length-off), false, false)
	if o == sent {
		t.onPacketSent(now, w, info.Opcode)
	}
	return o
}

// handleUC handles a packet of a UC peer. A message is delivered completely or
// not at all: after a gap, or a packet that cannot be executed, the rest of the
// message is dropped until the next FIRST or ONLY. The receive in use is kept
// for the next message.
func (c *Core) handleUC(now reliability.Time, p *wire.Packet) wire.Drop {
	m, i := &c.msg, p.Info
	expected := c.recv.Expected()
	c.recv.Advance(p.BTH.PSN.Sub(expected) + 1)
	switch {
	case i.First:
		m.active, m.got = false, 0
	case !m.active:
		return wire.DropBadSequence
	case p.BTH.PSN != expected:
		m.active = false
		return wire.DropOutOfSequence
	case m.op != i.Operation:
		m.active = false
		return wire.DropBadSequence
	}
	if !p.LengthFits(int(c.mtu)) {
		m.active = false
		return wire.DropBadLength
	}
	d := wire.DropNone
	if i.Operation == wire.OpSend {
		d = c.receiveUCSend(now, p)
	} else {
		d = c.receiveUCWrite(now, p)
	}
	if d != wire.DropNone {
		m.active = false
	}
	return d
}

func (c *Core) receiveUCSend(now reliability.Time, p *wire.Packet) wire.Drop {
	m := &c.msg
	if p.Info.First && !c.acquireRecv() {
		return wire.DropNoReceive
	}
	n := uint32(len(p.Payload))
	if uint64(m.got)+uint64(n) > m.capacity {
		return wire.DropTooBigForBuffer
	}
	if f := c.scatter(m.wqe.SGList, m.got, p.Payload); !f.ok() {
		c.failReceive(now, verbs.WCLocProtErr, recvFailure(f))
		return wire.DropNone
	}
	m.active, m.op = !p.Info.Last, wire.OpSend
	m.got += n
	c.counters.RcvdBytes += uint64(n)
	if p.Info.Last {
		c.completeRecv(p, verbs.WC{})
	}
	return wire.DropNone
}

func (c *Core) receiveUCWrite(now reliability.Time, p *wire.Packet) wire.Drop {
	m := &c.msg
	if c.attr.AccessFlags&verbs.AccessRemoteWrite == 0 {
		return wire.DropAccessDenied
	}
	n := uint32(len(p.Payload))
	need := n
	if p.Info.First {
		h := p.RETH()
		if h.Length > MaxMessage {
			return wire.DropBadLength
		}
		m.va, m.rkey, m.left, m.length = h.VA, h.RKey, h.Length, h.Length
		need = h.Length // the first packet is checked for the whole message
	}
	if p.Info.Last && n != m.left || !p.Info.Last && n >= m.left {
		return wire.DropBadLength
	}
	var dst []byte
	if need > 0 {
		var f Fault
		if dst, f = c.mem.Remote(m.rkey, m.va, need, verbs.AccessRemoteWrite, c.num); f != NoFault {
			return wire.DropAccessDenied
		}
	}
	if p.Info.Imm && !c.acquireRecv() {
		return wire.DropNoReceive
	}
	if !writeMemory(dst[:n], p.Payload) {
		c.failReceive(now, verbs.WCLocProtErr, &verbs.Failure{
			Event: "memory that the peer writes to: " + FaultMemory.String(), Opcode: p.Info.Name, PSN: uint32(p.BTH.PSN),
			Key: m.rkey, Addr: m.va, Length: n, Cause: memoryCause,
		})
		return wire.DropNone
	}
	c.counters.RcvdBytes += uint64(n)
	m.va += uint64(n)
	m.left -= n
	m.active, m.op = !p.Info.Last, wire.OpWrite
	if p.Info.Imm {
		c.completeRecv(p, verbs.WC{})
	}
	return wire.DropNone
}
