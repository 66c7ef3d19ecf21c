package rdma

import (
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// RDMARead implements protocol.Net.
func (f *Fabric) RDMARead(rank int, b []byte, key envelope.Key, move uint64) error {
	return f.startTransfer(verbs.SendWR{Opcode: verbs.WRRDMARead}, rank, b, key, move)
}

// RDMAWrite implements protocol.Net. A packet that is sent after it arrives behind
// it, for it takes the same queue pair.
func (f *Fabric) RDMAWrite(rank int, b []byte, key envelope.Key, move uint64) error {
	return f.startTransfer(verbs.SendWR{Opcode: verbs.WRRDMAWrite}, rank, b, key, move)
}

// RDMAWriteImm implements protocol.Notifier. The notice takes a receive of the rank,
// so there has to be a credit, as for a packet. What is short has left at once: who
// has many ranks to write to does not wait for their acknowledgements.
func (f *Fabric) RDMAWriteImm(rank int, b []byte, key envelope.Key, notice uint32, move uint64) error {
	l := f.links[rank]
	if l != nil && l.up && l.credits == 0 {
		l.coreWaiting = true
		return protocol.ErrNoRoom
	}
	wr := verbs.SendWR{Opcode: verbs.WRRDMAWriteWithImm, Imm: notice}
	if len(b) > inlineMax {
		err := f.startTransfer(wr, rank, b, key, move)
		if err == nil {
			l.credits--
		}
		return err
	}
	l, err := f.usableLink(rank, 1)
	if err != nil {
		return err
	}
	wr.Flags, wr.InlineData, wr.RemoteAddr, wr.RKey, wr.WRID = verbs.SendInline, b, key.Addr, key.RKey, l.nextWRID(wrInline, 0)
	if l.posted%signalInterval == 0 {
		wr.Flags |= verbs.SendSignaled
	}
	f.wr[0] = wr
	if f.postWR(l) {
		l.credits--
		f.countRecent(l)
	}
	f.host.Core().TransferDone(move, l.cause)
	return nil
}

// RDMAAtomic implements protocol.Atomics, in a send buffer.
func (f *Fabric) RDMAAtomic(rank int, b []byte, key envelope.Key, a protocol.Atomic, move uint64) error {
	l, err := f.usableLink(rank, 1)
	if err != nil {
		return err
	}
	m := transfer{id: move, buffer: f.sendBuffers.alloc(), readBuffer: b}
	if m.buffer == noBuffer {
		f.waitForBuffer(l)
		return protocol.ErrNoRoom
	}
	f.sge[0] = f.sendBuffers.sge(m.buffer, 8)
	wr := verbs.SendWR{Opcode: verbs.WRAtomicFetchAdd, CompareAdd: a.Operand, RemoteAddr: key.Addr, RKey: key.RKey, SGList: f.sge[:]}
	if a.Swap {
		wr.Opcode, wr.Swap = verbs.WRAtomicCmpSwap, a.New
	}
	f.postTransfer(l, wr, m)
	return nil
}

// usableLink is the connection to a rank, if its send queue has room.
func (f *Fabric) usableLink(rank, room int) (*link, error) {
	l := f.links[rank]
	if l == nil || !l.up {
		f.startConnect(rank)
		return nil, protocol.ErrNoRoom // and Resume or Lost follows
	}
	if l.freeSendSlots() < room {
		l.coreWaiting = true
		return nil, protocol.ErrNoRoom
	}
	return l, nil
}

// maxTransferWR is the longest piece of memory that one work request moves.
const maxTransferWR = 1 << 30

// transfer is a transfer under way.
type transfer struct {
	id         uint64      // the core's
	mr         *region     // its memory, or nil
	buffer     int         // the send buffer that it goes through, or noSlot
	readBuffer []byte      // where what comes in that belongs
	parts      int         // work requests that are to complete: rails bring some
	err        error       // of one of them
	onDone     func(error) // instead of telling the core
	live       bool
}

// noBuffer is what there is instead of a send buffer.
const noBuffer = -1

// startTransfer begins a transfer: of little in its work request or through a send buffer,
// unless the memory is registered, of much from where it is. The work request says
// which.
func (f *Fabric) startTransfer(wr verbs.SendWR, rank int, b []byte, key envelope.Key, move uint64) error {
	pieces := (len(b) + maxTransferWR - 1) / maxTransferWR
	l, err := f.usableLink(rank, pieces)
	if err != nil {
		return err
	}
	op := wr.Opcode
	wr.RemoteAddr, wr.RKey, wr.SGList = key.Addr, key.RKey, f.sge[:]
	m := transfer{id: move, buffer: noBuffer}
	if op != verbs.WRRDMARead && len(b) <= inlineMax {
		wr.Flags, wr.SGList, wr.InlineData = verbs.SendInline, nil, b
		f.postTransfer(l, wr, m)
		return nil
	}
	if m.mr = f.cache.lookup(b); m.mr == nil && len(b) <= f.sendBuffers.size {
		if m.buffer = f.sendBuffers.alloc(); m.buffer != noBuffer {
			f.sge[0] = f.sendBuffers.sge(m.buffer, len(b))
			if op == verbs.WRRDMARead {
				m.readBuffer = b
			} else {
				copy(f.sendBuffers.buffer(m.buffer), b)
			}
			f.postTransfer(l, wr, m)
			return nil
		}
	}
	if m.mr == nil {
		if m.mr, err = f.cache.acquire(b); err != nil {
			return err
		}
	}
	index := f.transfers.add(m)
	if rails := f.railsFor(l, len(b)); op == verbs.WRRDMARead && len(rails) > 0 {
		b = f.postStripes(rails, b, m.mr, index, wr)
	}
	for off := 0; off < len(b); off += maxTransferWR {
		n := min(maxTransferWR, len(b)-off)
		f.sge[0] = m.mr.sge(b[off : off+n])
		wr.RemoteAddr, wr.WRID = key.Addr+uint64(off), l.nextWRID(wrSegment, index)
		f.wr[0] = wr
		if off+n == len(b) {
			f.wr[0].Flags, f.wr[0].WRID = verbs.SendSignaled, l.nextWRID(wrTransfer, index)
		} else if op == verbs.WRRDMAWriteWithImm {
			f.wr[0].Opcode = verbs.WRRDMAWrite // the last one tells
		}
		if !f.postWR(l) {
			f.completePart(index, l.cause)
			break
		}
	}
	return nil
}

// postTransfer begins a transfer that is one work request.
func (f *Fabric) postTransfer(l *link, wr verbs.SendWR, m transfer) {
	index := f.transfers.add(m)
	wr.Flags |= verbs.SendSignaled
	wr.WRID = l.nextWRID(wrTransfer, index)
	if f.enqueueTransfer(l, &wr, index) {
		return
	}
	f.wr[0] = wr
	if !f.postWR(l) {
		f.finishTransfer(index, l.cause)
		return
	}
	f.countRecent(l)
}

// finishTransfer ends a transfer.
func (f *Fabric) finishTransfer(index int, err error) {
	m := f.transfers.remove(index)
	if m.mr != nil {
		f.cache.release(m.mr)
	}
	if m.buffer != noBuffer {
		copy(m.readBuffer, f.sendBuffers.buffer(m.buffer))
		f.sendBuffers.release(m.buffer)
	}
	if m.onDone != nil {
		m.onDone(err)
		return
	}
	f.host.Core().TransferDone(m.id, err)
}
