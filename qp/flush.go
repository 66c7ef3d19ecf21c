package qp

import (
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// FLUSH and ATOMIC WRITE (IBTA volume 1, release 1.5, annex A19) take a place among the outstanding reads and
// atomics, and are answered by an empty READ RESPONSE ONLY.

// isEmptyRead reports whether a request is answered by an empty READ response.
func isEmptyRead(p *wire.Packet) bool {
	return p.Info.Operation == wire.OpFlush || p.Info.Operation == wire.OpAtomicWrite
}

// checkFlush returns an error if no responder can execute the request.
func (c *Core) checkFlush(f verbs.Flush) error {
	const all = verbs.FlushGlobal | verbs.FlushPersistent
	if f.Placement == 0 || f.Placement&^all != 0 || f.Selectivity > verbs.FlushRegion {
		return c.invalidError("post send", "flush with placement %d, selectivity %d; want placement 1 to %d, selectivity 0 or 1",
			f.Placement, f.Selectivity, all)
	}
	return nil
}

// sendEmptyRead builds a FLUSH or ATOMIC WRITE request.
func (t rc) sendEmptyRead(now reliability.Time, out Out, w *sendWQE) outcome {
	if int(t.rdOut) >= t.readDepth(t.attr.MaxRdAtomic) || !t.spanAllows(1) {
		return blocked
	}
	info, o := t.putEmptyRead(now, out, w, t.next)
	if o != sent {
		return o
	}
	t.rdOut++
	if !t.next.Less(t.top) {
		t.credits.StartMessage(false)
	}
	t.onPacketSent(now, w, info.Opcode, 1, true)
	return sent
}

// putEmptyRead builds the packet of w, the FLUSH or ATOMIC WRITE at cur, with this PSN.
func (c *Core) putEmptyRead(now reliability.Time, out Out, w *sendWQE, psn wire.PSN) (*wire.Info, outcome) {
	info := wire.RCFlush.Info()
	if w.op == verbs.WRAtomicWrite {
		info = wire.RCAtomicWrite.Info()
		if w.inline == 0 {
			if m := c.checkList(c.sq.sglAt(c.cur), 0, w.length, false); !m.ok() {
				return info, c.failSource(now, w, m)
			}
		}
	}
	b := out.Next(&c.path, info.HeaderLen+int(w.length)+wire.ICRCLen)
	if b == nil {
		return info, full
	}
	if w.op == verbs.WRFlush {
		wire.FETH{Placement: uint8(w.flush.Placement), Selectivity: uint8(w.flush.Selectivity)}.Put(b[wire.BTHLen:])
		wire.RETH{VA: w.remote, RKey: w.rkey, Length: w.flush.Length}.Put(b[wire.BTHLen+wire.FETHLen:])
	} else {
		if m := c.fillPayload(b[info.HeaderLen:info.HeaderLen+int(w.length)], w, nil, 0, w.length); !m.ok() {
			out.Cancel()
			return info, c.failSource(now, w, m)
		}
		wire.RETH{VA: w.remote, RKey: w.rkey, Length: w.length}.Put(b[wire.BTHLen:])
		c.counters.SentBytes += uint64(w.length)
	}
	bth := wire.BTH{Opcode: info.Opcode, PKey: c.pkey, DestQPN: c.attr.DestQPN, PSN: psn, AckReq: true}
	bth.Put(b)
	return info, sent
}

// receiveFlush handles a FLUSH request. Earlier requests of the queue pair are complete. Their data is in the memory of
// the process, where every processor sees it.
func (c *Core) receiveFlush(now reliability.Time, p *wire.Packet) wire.Drop {
	f, h := p.FETH(), p.RETH()
	need := verbs.AccessFlags(0)
	if f.Placement&wire.PlacementGlobal != 0 {
		need |= verbs.AccessFlushGlobal
	}
	if f.Placement&wire.PlacementPersistent != 0 {
		need |= verbs.AccessFlushPersistent
	}
	switch {
	case need == 0 || f.Placement&^(wire.PlacementGlobal|wire.PlacementPersistent) != 0 || f.Selectivity > wire.SelectRegion:
		return c.rejectRequest(now, p, wire.NakInvalidRequest, "the FLUSH has a reserved placement or selectivity")
	case need&^c.attr.AccessFlags != 0:
		return c.rejectRequest(now, p, wire.NakInvalidRequest, "the queue pair does not permit FLUSH with this placement")
	}
	fault := c.mem.CheckKey(h.RKey, need, c.num)
	if f.Selectivity == wire.SelectRange && fault == NoFault {
		_, fault = c.mem.Remote(h.RKey, h.VA, h.Length, need, c.num)
	}
	if fault != NoFault {
		return c.rejectRequest(now, p, wire.NakRemoteAccess, fault.String())
	}
	return c.respondEmpty(now, p)
}

// receiveAtomicWrite handles an ATOMIC WRITE request, which stores 8 bytes at once.
func (c *Core) receiveAtomicWrite(now reliability.Time, p *wire.Packet) wire.Drop {
	if c.attr.AccessFlags&verbs.AccessRemoteWrite == 0 {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, "the queue pair does not permit remote writes")
	}
	h := p.RETH()
	switch {
	case int(h.Length) != len(p.Payload):
		return c.rejectRequest(now, p, wire.NakInvalidRequest, "the length of an ATOMIC WRITE must be 8")
	case h.VA%8 != 0:
		return c.rejectRequest(now, p, wire.NakInvalidRequest, "the address of an ATOMIC WRITE must be a multiple of 8")
	}
	mem, f := c.mem.Remote(h.RKey, h.VA, h.Length, verbs.AccessRemoteWrite, c.num)
	if f != NoFault {
		return c.rejectRequest(now, p, wire.NakRemoteAccess, f.String())
	}
	if _, ok := atomicWord(mem); !ok {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, FaultMisalign.String())
	}
	if !c.res.HasRoom() {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, tooManyReads)
	}
	if !writeMemory(mem, p.Payload) { // one aligned word, stored at once
		return c.rejectRequest(now, p, wire.NakRemoteOperational, FaultMemory.String())
	}
	c.counters.RcvdBytes += uint64(h.Length)
	return c.respondEmpty(now, p)
}

// respondEmpty schedules the empty response of p. It keeps a place among the responses, so that a repeated request is
// answered and not executed again.
func (c *Core) respondEmpty(now reliability.Time, p *wire.Packet) wire.Drop {
	r := c.res.Add()
	if r == nil {
		return c.rejectRequest(now, p, wire.NakInvalidRequest, tooManyReads)
	}
	c.recv.CompleteMessage()
	r.First, r.Last, r.Empty, r.MSN = p.BTH.PSN, p.BTH.PSN, true, c.recv.MSN()
	c.res.ScheduleResponse(r, r.First, r.Last, false)
	c.recv.Advance(1)
	return wire.DropNone
}
