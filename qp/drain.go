package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// Drain builds the packets that are ready: responses and NAKs, congestion
// notifications, then requests. It reports whether the batch is full and
// packets may remain. A pending acknowledgement is left to DrainAck.
func (c *Core) Drain(now reliability.Time, out Out) bool { return c.transport.drain(now, out) }

// HasPendingAck reports whether an acknowledgement is pending for DrainAck.
func (c *Core) HasPendingAck() bool { return c.transport.hasPendingAck() }

// DrainAck builds the pending acknowledgement, unless it would overtake
// responses that Drain has not built yet. It reports whether the batch is full.
func (c *Core) DrainAck(now reliability.Time, out Out) bool { return c.transport.drainAck(now, out) }

// ExpireDelayedAck makes a delayed acknowledgement pending now.
func (c *Core) ExpireDelayedAck() { c.transport.expireDelayedAck() }

// sendAck builds the pending acknowledgement or NAK.
func (c *Core) sendAck(now reliability.Time, out Out) bool {
	if c.sel != nil && !c.acks.NAKPending() && (c.sel.due || c.sel.hasKept()) {
		return c.sendSelectiveAck(now, out)
	}
	info := wire.RCAck.Info()
	b := out.Next(&c.path, info.HeaderLen+wire.ICRCLen)
	if b == nil {
		return false
	}
	s, psn := c.acks.Pop(c.creditCode())
	switch {
	case s.Kind() == wire.KindRNR:
		c.counters.SendRNRErr++
	case s == wire.NakPSNSequence:
		c.counters.SendSeqErr++
	}
	c.putAETH(now, b, info.Opcode, psn, s, c.recv.MSN())
	return true
}

// creditCode returns the number of posted receives as a credit code.
func (c *Core) creditCode() uint8 {
	if c.noCredits || c.shared != nil {
		return wire.CreditUnlimited
	}
	code := wire.CreditCode(c.rq.len())
	c.zeroCredits = code == 0
	return code
}

// putAETH writes BTH and AETH of a response.
func (c *Core) putAETH(now reliability.Time, b []byte, op wire.Opcode, psn wire.PSN, s wire.Syndrome, msn uint32) {
	bth := wire.BTH{Opcode: op, PKey: c.pkey, DestQPN: c.attr.DestQPN, PSN: psn}
	bth.Put(b)
	wire.AETH{Syndrome: s, MSN: msn}.Put(b[wire.BTHLen:])
	c.counters.SentPkts++
	c.recorder.addPacket(now, true, op, psn, uint8(s))
}

// sendResponse builds the packets of the pending response r as far as the batch
// has space and the pacer permits, and reports whether the response is complete.
func (c *Core) sendResponse(now reliability.Time, out Out, r *reliability.Resource) bool {
	if r.Atomic {
		info := wire.RCAtomicAck.Info()
		b := out.Next(&c.path, info.HeaderLen+wire.ICRCLen)
		if b == nil {
			return false
		}
		c.putAETH(now, b, info.Opcode, r.First, wire.AckSyndrome(c.creditCode()), r.MSN)
		wire.AtomicAckETH{Orig: r.Orig}.Put(b[wire.BTHLen+wire.AETHLen:])
		c.res.OnPacketSent(r)
		c.acks.OnResponseSent(r.First)
		return true
	}
	for r.Pending() {
		if !c.mayPace(now) {
			return false
		}
		off := uint32(r.Next.Sub(r.First)) * c.mtu
		n := min(c.mtu, r.Length-off)
		var src []byte
		if n > 0 {
			var f Fault
			if src, f = c.mem.Remote(r.RKey, r.VA+uint64(off), n, verbs.AccessRemoteRead, c.num); f != NoFault {
				c.failVanishedRead(now, r, f)
				return true
			}
		}
		// To a softrnic peer all packets have an AETH and one size, see
		// splitsWrite.
		first, last := r.Next == r.From || c.softrnicPeer, r.Next == r.To || c.softrnicPeer
		info := wire.Compose(wire.ClassRC, wire.OpReadResponse, first, last, false, false).Info()
		pad := wire.PadFor(int(n))
		b := out.Next(&c.path, info.HeaderLen+int(n)+pad+wire.ICRCLen)
		if b == nil {
			return false
		}
		body := b[info.HeaderLen : info.HeaderLen+int(n)+pad]
		if !loadReadSource(body[:n], src, r.IsReplay()) {
			out.Cancel()
			c.failVanishedRead(now, r, FaultMemory)
			return true
		}
		clear(body[n:])
		if info.AETH {
			c.putAETH(now, b, info.Opcode, r.Next, wire.AckSyndrome(c.creditCode()), r.MSN)
		} else {
			bth := wire.BTH{Opcode: info.Opcode, PKey: c.pkey, DestQPN: c.attr.DestQPN, PSN: r.Next}
			bth.Put(b)
			c.counters.SentPkts++
			c.recorder.addPacket(now, true, info.Opcode, r.Next, 0)
		}
		b[1] |= uint8(pad) << 4
		c.counters.SentBytes += uint64(n)
		c.onDataSent(now, int(n), true)
		c.acks.OnResponseSent(r.Next)
		c.res.OnPacketSent(r)
	}
	return true
}

// failVanishedRead ends the response to a read whose memory was deregistered,
// or became inaccessible, before it was sent. A repeated response is dropped
// silently, because the peer may have the first one.
func (c *Core) failVanishedRead(now reliability.Time, r *reliability.Resource, f Fault) {
	if r.IsReplay() {
		c.res.CancelResponse(r)
		return
	}
	c.res.CancelAll()
	s, status, cause := wire.NakRemoteAccess, verbs.WCRemAccessErr, "deregister memory only after the peer's requests are complete"
	if f == FaultMemory {
		s, status, cause = wire.NakRemoteOperational, verbs.WCLocProtErr, memoryCause
	}
	c.acks.ScheduleNAK(s, r.Next)
	if c.state == sErr {
		return
	}
	c.failReceive(now, status, &verbs.Failure{
		Event: "memory that the peer reads is no longer accessible: " + f.String(), PSN: uint32(r.Next),
		Key: r.RKey, Addr: r.VA, Length: r.Length, Cause: cause,
	})
}

// cnpSpacing is the minimum interval between congestion notifications in
// nanoseconds.
const cnpSpacing = 50 * reliability.Microsecond

// sendCNP builds a congestion notification packet.
func (c *Core) sendCNP(now reliability.Time, out Out) bool {
	b := out.Next(&c.path, wire.CNPLen)
	if b == nil {
		return false
	}
	wire.PutCNP(b, c.attr.DestQPN)
	c.cnpDue = false
	c.counters.CNPSent++
	c.counters.SentPkts++
	c.recorder.addPacket(now, true, wire.CNP, 0, 0)
	return true
}
