package rdma

import (
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// RDMARead implements protocol.Net.
func (f *Fabric) RDMARead(rank int, b []byte, key envelope.Key, move uint64) error {
	return f.move(verbs.SendWR{Opcode: verbs.WRRDMARead}, rank, b, key, move)
}

// RDMAWrite implements protocol.Net. A packet that is sent after it arrives behind
// it, for it takes the same queue pair.
func (f *Fabric) RDMAWrite(rank int, b []byte, key envelope.Key, move uint64) error {
	return f.move(verbs.SendWR{Opcode: verbs.WRRDMAWrite}, rank, b, key, move)
}

// StoreNotify implements protocol.Notifier. The notice takes a receive of the rank,
// so there has to be a credit, as for a packet. What is short has left at once: who
// has many ranks to write to does not wait for their acknowledgements.
func (f *Fabric) StoreNotify(rank int, b []byte, key envelope.Key, notice uint32, move uint64) error {
	l := f.links[rank]
	if l != nil && l.up && l.credits == 0 {
		l.waiting = true
		return protocol.ErrNoRoom
	}
	wr := verbs.SendWR{Opcode: verbs.WRRDMAWriteWithImm, Imm: notice}
	if len(b) > inlineMax {
		err := f.move(wr, rank, b, key, move)
		if err == nil {
			l.credits--
		}
		return err
	}
	l, err := f.way(rank, 1)
	if err != nil {
		return err
	}
	wr.Flags, wr.InlineData, wr.RemoteAddr, wr.RKey, wr.WRID = verbs.SendInline, b, key.Addr, key.RKey, l.wrid(wrInline, 0)
	if l.posted%signalEvery == 0 {
		wr.Flags |= verbs.SendSignaled
	}
	f.wr[0] = wr
	if f.post(l) {
		l.credits--
		f.recent(l)
	}
	f.host.Core().TransferDone(move, l.why)
	return nil
}

// Atomic implements protocol.Atomics, in a send buffer.
func (f *Fabric) Atomic(rank int, b []byte, key envelope.Key, a protocol.Atomic, move uint64) error {
	l, err := f.way(rank, 1)
	if err != nil {
		return err
	}
	m := moving{id: move, slot: f.sends.take(), into: b}
	if m.slot == noSlot {
		f.wait(l)
		return protocol.ErrNoRoom
	}
	f.sge[0] = f.sends.sge(m.slot, 8)
	wr := verbs.SendWR{Opcode: verbs.WRAtomicFetchAdd, CompareAdd: a.Operand, RemoteAddr: key.Addr, RKey: key.RKey, SGList: f.sge[:]}
	if a.Swap {
		wr.Opcode, wr.Swap = verbs.WRAtomicCmpSwap, a.New
	}
	f.begin(l, wr, m)
	return nil
}

// way is the connection to a rank, if its send queue has room.
func (f *Fabric) way(rank, room int) (*link, error) {
	l := f.links[rank]
	if l == nil || !l.up {
		f.connect(rank)
		return nil, protocol.ErrNoRoom // and Resume or Lost follows
	}
	if l.room() < room {
		l.waiting = true
		return nil, protocol.ErrNoRoom
	}
	return l, nil
}

// maxMove is the longest piece of memory that one work request moves.
const maxMove = 1 << 30

// moving is a transfer under way.
type moving struct {
	id    uint64      // the core's
	mr    *region     // its memory, or nil
	slot  int         // the send buffer that it goes through, or noSlot
	into  []byte      // where what comes in that belongs
	parts int         // work requests that are to complete: rails bring some
	err   error       // of one of them
	then  func(error) // instead of telling the core
	live  bool
}

// noSlot is what there is instead of a send buffer.
const noSlot = -1

// move begins a transfer: of little in its work request or through a send buffer,
// unless the memory is registered, of much from where it is. The work request says
// which.
func (f *Fabric) move(wr verbs.SendWR, rank int, b []byte, key envelope.Key, move uint64) error {
	pieces := (len(b) + maxMove - 1) / maxMove
	l, err := f.way(rank, pieces)
	if err != nil {
		return err
	}
	op := wr.Opcode
	wr.RemoteAddr, wr.RKey, wr.SGList = key.Addr, key.RKey, f.sge[:]
	m := moving{id: move, slot: noSlot}
	if op != verbs.WRRDMARead && len(b) <= inlineMax {
		wr.Flags, wr.SGList, wr.InlineData = verbs.SendInline, nil, b
		f.begin(l, wr, m)
		return nil
	}
	if m.mr = f.cache.find(b); m.mr == nil && len(b) <= f.sends.size {
		if m.slot = f.sends.take(); m.slot != noSlot {
			f.sge[0] = f.sends.sge(m.slot, len(b))
			if op == verbs.WRRDMARead {
				m.into = b
			} else {
				copy(f.sends.buf(m.slot), b)
			}
			f.begin(l, wr, m)
			return nil
		}
	}
	if m.mr == nil {
		if m.mr, err = f.cache.get(b); err != nil {
			return err
		}
	}
	index := f.moves.add(m)
	if rails := f.stripes(l, len(b)); op == verbs.WRRDMARead && len(rails) > 0 {
		b = f.stripe(rails, b, m.mr, index, wr)
	}
	for off := 0; off < len(b); off += maxMove {
		n := min(maxMove, len(b)-off)
		f.sge[0] = m.mr.sge(b[off : off+n])
		wr.RemoteAddr, wr.WRID = key.Addr+uint64(off), l.wrid(wrPart, index)
		f.wr[0] = wr
		if off+n == len(b) {
			f.wr[0].Flags, f.wr[0].WRID = verbs.SendSignaled, l.wrid(wrMove, index)
		} else if op == verbs.WRRDMAWriteWithImm {
			f.wr[0].Opcode = verbs.WRRDMAWrite // the last one tells
		}
		if !f.post(l) {
			f.part(index, l.why)
			break
		}
	}
	return nil
}

// begin begins a transfer that is one work request.
func (f *Fabric) begin(l *link, wr verbs.SendWR, m moving) {
	index := f.moves.add(m)
	wr.Flags |= verbs.SendSignaled
	wr.WRID = l.wrid(wrMove, index)
	if f.enlist(l, &wr, index) {
		return
	}
	f.wr[0] = wr
	if !f.post(l) {
		f.moved(index, l.why)
		return
	}
	f.recent(l)
}

// moved ends a transfer.
func (f *Fabric) moved(index int, err error) {
	m := f.moves.remove(index)
	if m.mr != nil {
		f.cache.put(m.mr)
	}
	if m.slot != noSlot {
		copy(m.into, f.sends.buf(m.slot))
		f.sends.put(m.slot)
	}
	if m.then != nil {
		m.then(err)
		return
	}
	f.host.Core().TransferDone(m.id, err)
}
