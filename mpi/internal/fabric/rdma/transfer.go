package rdma

import (
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// RDMARead implements protocol.Net.
func (f *Fabric) RDMARead(rank int, b []byte, key envelope.Key, transferID uint64) error {
	return f.startTransfer(verbs.SendWR{Opcode: verbs.WRRDMARead}, rank, b, key, transferID)
}

// RDMAWrite implements protocol.Net. A packet sent later uses the same queue pair and
// so arrives after the data; stripes on other queue pairs delay it.
func (f *Fabric) RDMAWrite(rank int, b []byte, key envelope.Key, transferID uint64) error {
	return f.startTransfer(verbs.SendWR{Opcode: verbs.WRRDMAWrite}, rank, b, key, transferID)
}

// RDMAWriteImm implements protocol.Notifier. The immediate data consumes a receive at
// the target, so it needs a credit like a packet. Short data is inline and complete at
// once, so that a rank with many targets does not wait for their acknowledgements.
func (f *Fabric) RDMAWriteImm(rank int, b []byte, key envelope.Key, notice uint32, transferID uint64) error {
	l := f.links[rank]
	if l != nil && l.up && !l.mayNotify() {
		f.waitForRoom(l)
		return protocol.ErrNoRoom
	}
	wr := verbs.SendWR{Opcode: verbs.WRRDMAWriteWithImm, Imm: notice}
	if len(b) > inlineMax {
		err := f.startTransfer(wr, rank, b, key, transferID)
		if err == nil {
			l.useCredit()
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
		l.useCredit()
		f.countRecent(l)
	}
	f.host.Core().TransferDone(transferID, l.cause)
	return nil
}

// RDMAAtomic implements protocol.Atomics through a send buffer.
func (f *Fabric) RDMAAtomic(rank int, b []byte, key envelope.Key, a protocol.Atomic, transferID uint64) error {
	l, err := f.usableLink(rank, 1)
	if err != nil {
		return err
	}
	m := transfer{id: transferID, buffer: f.sendBuffers.alloc(), readBuffer: b}
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

// usableLink returns the connection to a rank, if its send queue has room for some work
// requests.
func (f *Fabric) usableLink(rank, room int) (*link, error) {
	l := f.links[rank]
	if l == nil || !l.up {
		f.startConnect(rank)
		return nil, protocol.ErrNoRoom // Resume or FailPeer follows
	}
	if l.freeSendSlots() < room {
		f.waitForRoom(l)
		return nil, protocol.ErrNoRoom
	}
	return l, nil
}

// maxTransferWR is the maximum length in bytes of a work request.
const maxTransferWR = 1 << 30

// A transfer is an RDMA operation in flight.
type transfer struct {
	id         uint64      // ID at the core
	mr         *region     // registration of its memory, or nil
	buffer     int         // send buffer in use, or noBuffer
	readBuffer []byte      // destination of data read into the send buffer
	parts      int         // outstanding work requests, with those of rails
	written    bool        // a write with stripes on rails
	err        error       // first error
	onDone     func(error) // called instead of Core.TransferDone
	live       bool
}

// noBuffer is the index of no send buffer.
const noBuffer = -1

// startTransfer posts a transfer, whose operation wr gives: short ones inline or
// through a send buffer unless the memory is registered, long ones from the registered
// memory.
func (f *Fabric) startTransfer(wr verbs.SendWR, rank int, b []byte, key envelope.Key, transferID uint64) error {
	pieces := (len(b) + maxTransferWR - 1) / maxTransferWR
	l, err := f.usableLink(rank, pieces)
	if err != nil {
		return err
	}
	op := wr.Opcode
	wr.RemoteAddr, wr.RKey, wr.SGList = key.Addr, key.RKey, f.sge[:]
	m := transfer{id: transferID, buffer: noBuffer}
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
	if op != verbs.WRRDMAWriteWithImm { // which must arrive after its data
		b = f.postStripes(f.railsFor(l, len(b)), b, m.mr, index, wr)
	}
	for off := 0; off < len(b); off += maxTransferWR {
		n := min(maxTransferWR, len(b)-off)
		f.sge[0] = m.mr.sge(b[off : off+n])
		wr.RemoteAddr, wr.WRID = key.Addr+uint64(off), l.nextWRID(wrSegment, index)
		f.wr[0] = wr
		if off+n == len(b) {
			f.wr[0].Flags, f.wr[0].WRID = verbs.SendSignaled, l.nextWRID(wrTransfer, index)
		} else if op == verbs.WRRDMAWriteWithImm {
			f.wr[0].Opcode = verbs.WRRDMAWrite // only the last one notifies
		}
		if !f.postWR(l) {
			f.completePart(index, l.cause)
			break
		}
	}
	return nil
}

// postTransfer posts a transfer that is one work request.
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

// finishTransfer completes a transfer and releases its resources.
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
