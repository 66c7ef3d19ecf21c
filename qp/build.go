package qp

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// splitsWrite reports whether w is sent as one RDMA WRITE ONLY packet per MTU.
// This applies to multi-packet writes to a softrnic peer.
//
// In a segmented message the FIRST packet carries a RETH and MIDDLE and LAST do
// not, so their sizes differ. Generic segmentation offload (UDP GSO) requires
// packets of one size per buffer, so each segmented message would need at least
// two buffers, and a buffer costs more than its packets. WRITE ONLY packets
// have one size, also across messages.
//
// Any responder accepts them, because they are consecutive short writes. Two
// effects differ: each packet counts in the MSN, and each is checked by itself,
// so a write that exceeds its region may have been partly executed when it
// fails. All packets but the last have BTH.More set: with immediate data, the
// receive completion reports the total length, and no acknowledgement is urgent
// in the middle of a message. Writes of UC are not split, because they must
// arrive completely or not at all.
//
// The last packet of a write with immediate data is 4 bytes longer than others
// of the same payload. An application that streams such writes should make them
// 4 bytes shorter than a multiple of the MTU.
//
// For the same reason, read responses to softrnic peers are all ONLY packets,
// see sendResponse.
func (c *Core) splitsWrite(w *sendWQE) bool {
	return c.softrnicPeer && (w.op == verbs.WRRDMAWrite || w.op == verbs.WRRDMAWriteWithImm) && w.length > c.mtu
}

// minZeroCopy is the minimum payload in bytes that is sent from the
// application's memory without a copy.
const minZeroCopy = 2048

// buildData builds the packet of a SEND or WRITE with n bytes from off. If zeroCopy is set, out
// may refer to the application's memory.
func (c *Core) buildData(now reliability.Time, out Out, w *sendWQE, off, n uint32, ackReq, zeroCopy bool) (*wire.Info, outcome) {
	last := off+n == w.length
	write := w.op == verbs.WRRDMAWrite || w.op == verbs.WRRDMAWriteWithImm
	op := wire.OpSend
	if write {
		op = wire.OpWrite
	}
	imm := last && (w.op == verbs.WRSendWithImm || w.op == verbs.WRRDMAWriteWithImm)
	split := c.splitsWrite(w)
	info := wire.Compose(c.class, op, off == 0 || split, last || split, imm, last && w.op == verbs.WRSendWithInv).Info()
	pad := wire.PadFor(int(n))
	total := info.HeaderLen + int(n) + pad + wire.ICRCLen

	var src []byte
	if w.inline == 0 {
		var m memFault
		if src, m = c.resolveSource(c.sq.sglAt(c.cur), off, n); !m.ok() {
			return nil, c.failSource(now, w, m)
		}
	}
	var b []byte
	zeroCopy = zeroCopy && len(src) >= minZeroCopy && pad == 0
	if zeroCopy {
		if off%probeAhead == 0 {
			if m := c.probeSource(&c.sq.sglAt(c.cur)[0], off, w.length); !m.ok() {
				return nil, c.failSource(now, w, m)
			}
		}
		b = out.NextZeroCopy(&c.path, info.HeaderLen, src)
	} else {
		b = out.Next(&c.path, total)
	}
	if b == nil {
		return nil, full
	}
	if !zeroCopy {
		if m := c.fillPayload(b[info.HeaderLen:info.HeaderLen+int(n)+pad], w, src, off, n); !m.ok() {
			out.Cancel()
			return nil, c.failSource(now, w, m)
		}
	}
	bth := wire.BTH{
		Opcode: info.Opcode, Pad: uint8(pad), PKey: c.pkey, DestQPN: c.attr.DestQPN, PSN: c.next,
		SE:     last && w.flags&verbs.SendSolicited != 0 && w.consumesRecv(),
		AckReq: ackReq,
		More:   split && !last,
	}
	bth.Put(b)
	if info.RETH {
		h := wire.RETH{VA: w.remote, RKey: w.rkey, Length: w.length}
		if split {
			h.VA, h.Length = w.remote+uint64(off), n
		}
		h.Put(b[wire.BTHLen:])
	}
	if info.Imm {
		binary.BigEndian.PutUint32(b[info.HeaderLen-wire.ImmLen:], w.immInv)
	}
	if info.IETH {
		wire.IETH{RKey: w.immInv}.Put(b[info.HeaderLen-wire.IETHLen:])
	}
	c.counters.SentBytes += uint64(n)
	return info, sent
}

// failSource fails w, the request at cur, because its source cannot be read. It
// first waits until earlier requests are complete.
func (c *Core) failSource(now reliability.Time, w *sendWQE, m memFault) outcome {
	if c.cur == c.sq.head {
		c.failLocal(now, w, m)
	}
	return blocked
}
