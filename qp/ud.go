package qp

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// GSIQKey is the well-known Q_Key of the general services interface.
const GSIQKey = 0x80010000

// ud is the unreliable datagram. Each request has its own path.
type ud struct{ unreliable }

// postRequest implements transport.
func (t ud) postRequest(wr *verbs.SendWR) error {
	n, err := t.checkRequest(wr)
	if err != nil {
		return err
	}
	path := t.host.Path(wr.AH)
	switch {
	case path == nil:
		return t.invalidError("post send", "a datagram requires an AH of this adapter")
	case wr.RemoteQPN == 0 || wr.RemoteQPN > wire.QPNMask:
		return t.invalidError("post send", "remote QPN 0x%x: want 1 to 0xffffff", wr.RemoteQPN)
	}
	return t.queueRequest(wr, n, path)
}

// checkPacket performs the checks of all datagrams.
func (t ud) checkPacket(p *wire.Packet) wire.Drop {
	switch {
	case p.Info.Class != wire.ClassUD:
		return wire.DropWrongTransport
	case !pkeyMatch(p.BTH.PKey, t.pkey):
		return wire.DropBadPKey
	}
	return wire.DropNone
}

// handlePacket, sendPacket and drain implement transport.
func (t ud) handlePacket(now reliability.Time, p *wire.Packet) wire.Drop {
	if d := t.checkPacket(p); d != wire.DropNone {
		return d
	}
	t.recordPacket(now, p)
	return t.handleDatagram(now, p)
}
func (t ud) sendPacket(now reliability.Time, out Out, w *sendWQE) outcome {
	op, o := t.buildDatagram(now, out, w)
	if o == sent {
		t.onPacketSent(now, w, op)
	}
	return o
}
func (t ud) drain(now reliability.Time, out Out) bool { return t.sendRequests(now, out) }

// buildDatagram builds the packet of a UD message.
func (c *Core) buildDatagram(now reliability.Time, out Out, w *sendWQE) (op wire.Opcode, o outcome) {
	n := int(w.length)
	info := wire.Compose(wire.ClassUD, wire.OpSend, true, true, w.op == verbs.WRSendWithImm, false).Info()
	pad := wire.PadFor(n)
	if w.inline == 0 {
		if m := c.checkList(c.sq.sglAt(c.cur), 0, w.length, false); !m.ok() {
			return 0, c.failSource(now, w, m)
		}
	}
	b := out.Next(w.path, info.HeaderLen+n+pad+wire.ICRCLen)
	if b == nil {
		return 0, full
	}
	if m := c.fillPayload(b[info.HeaderLen:info.HeaderLen+n+pad], w, nil, 0, w.length); !m.ok() {
		out.Cancel()
		return 0, c.failSource(now, w, m)
	}
	bth := wire.BTH{
		Opcode: info.Opcode, Pad: uint8(pad), PKey: c.pkey, DestQPN: w.qpn, PSN: c.next,
		SE: w.flags&verbs.SendSolicited != 0,
	}
	bth.Put(b)
	qkey := w.qkey
	if c.fixedQKey != 0 {
		qkey = c.fixedQKey
	} else if qkey&(1<<31) != 0 {
		qkey = c.attr.QKey // the top bit selects the queue pair's own Q_Key (IBTA volume 1, 10.2.5)
	}
	wire.DETH{QKey: qkey, SrcQPN: c.num}.Put(b[wire.BTHLen:])
	if info.Imm {
		binary.BigEndian.PutUint32(b[info.HeaderLen-wire.ImmLen:], w.immInv)
	}
	c.counters.SentBytes += uint64(n)
	return info.Opcode, sent
}

// handleDatagram delivers a UD message or drops it.
func (c *Core) handleDatagram(now reliability.Time, p *wire.Packet) wire.Drop {
	deth := p.DETH()
	qkey := c.attr.QKey
	if c.fixedQKey != 0 {
		qkey = c.fixedQKey
	}
	if deth.QKey != qkey {
		return wire.DropBadQKey
	}
	m := &c.msg
	if !c.acquireRecv() {
		return wire.DropNoReceive
	}
	if uint64(len(p.Payload))+wire.GRHLen > m.capacity {
		return wire.DropTooBigForBuffer // the receive stays for the next message
	}
	var grh [wire.GRHLen]byte
	wire.PutGRH(grh[:], p.Src.Addr(), p.Dst.Addr(), p.TOS, 8+len(p.Raw))
	if p.HopLimit != 0 {
		wire.SetGRHHops(grh[:], p.HopLimit, p.FlowLabel)
	}
	f := c.scatter(m.wqe.SGList, 0, grh[:])
	if f.ok() {
		f = c.scatter(m.wqe.SGList, wire.GRHLen, p.Payload)
	}
	if !f.ok() {
		c.failReceive(now, verbs.WCLocProtErr, recvFailure(f))
		return wire.DropNone
	}
	m.got = uint32(len(p.Payload)) + wire.GRHLen
	c.counters.RcvdBytes += uint64(len(p.Payload))
	wc := verbs.WC{Flags: verbs.WCGRH, SrcQPN: deth.SrcQPN}
	c.completeRecv(p, wc)
	return wire.DropNone
}
