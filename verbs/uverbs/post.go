//go:build linux

package uverbs

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/internal/qpstate"
	"github.com/softrnic/softrnic/verbs"
)

// PostSend implements verbs.QP. The requests are stored in the mapped queue, and one system call
// makes the kernel execute them.
func (q *queuePair) PostSend(wrs []verbs.SendWR) (int, error) {
	const op = "post send"
	state := verbs.QPState(q.state.Load())
	if !qpstate.MaySend(state) {
		return 0, &verbs.OpError{Op: op, Object: q.String(), Err: verbs.ErrState, Detail: "state " + state.String() + "; modify it to RTS first"}
	}
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	r := q.ring
	if r == nil {
		return 0, closedError(op, q.String())
	}
	at := r.producer.Load()
	accepted := len(wrs)
	var err error
	for i := range wrs {
		if r.isFull(at, q.init.Cap.MaxSendWR) {
			err = &verbs.OpError{Op: op, Object: q.String(), Err: verbs.ErrQueueFull}
		} else {
			err = q.storeRequest(r.elementAt(at), &wrs[i])
		}
		if err != nil {
			accepted = i
			break
		}
		at = (at + 1) & r.mask
	}
	if accepted == 0 {
		return 0, err
	}
	r.producer.Store(at)
	if kernel := q.pd.dev.file.sendCommand(q.doorbell); kernel != nil && err == nil {
		err = opError(op, q.String(), kernel) // the requests are queued nevertheless
	}
	return accepted, err
}

// storeRequest stores a request as an element of the queue.
func (q *queuePair) storeRequest(to unsafe.Pointer, wr *verbs.SendWR) error {
	const op = "post send"
	if !qpstate.SupportsOpcode(q.init.Type, wr.Opcode) {
		return &verbs.OpError{Op: op, Object: q.String(), Err: verbs.ErrUnsupported, Detail: wr.Opcode.String()}
	}
	e := (*sendElement)(to)
	*e = sendElement{id: wr.WRID, opcode: uint32(wr.Opcode), flags: uint32(wr.Flags & rxeFlags), remote: wr.RemoteAddr}
	switch wr.Opcode {
	case verbs.WRSend, verbs.WRSendWithImm, verbs.WRSendWithInv:
		if q.init.Type == verbs.UD {
			if err := q.storeDestination((*datagramRequest)(unsafe.Pointer(&e.request)), wr); err != nil {
				return err
			}
		}
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm, verbs.WRRDMARead:
		*(*remoteRequest)(unsafe.Pointer(&e.request)) = remoteRequest{addr: wr.RemoteAddr, rkey: wr.RKey}
	case verbs.WRAtomicCmpSwap, verbs.WRAtomicFetchAdd:
		if n := listLength(wr.SGList); n != 8 && wr.Flags&verbs.SendInline == 0 {
			return invalidError(op, q.String(), "an atomic returns 8 bytes: the list has %d", n)
		}
		*(*atomicRequest)(unsafe.Pointer(&e.request)) = atomicRequest{addr: wr.RemoteAddr, compareAdd: wr.CompareAdd, swap: wr.Swap, rkey: wr.RKey}
	case verbs.WRBindMW:
		return q.storeBind(e, wr)
	case verbs.WRLocalInv:
		binary.NativeEndian.PutUint32(e.immOrKey[:], wr.InvKey)
		e.flags &^= uint32(verbs.SendInline)
		return nil
	default:
		return &verbs.OpError{Op: op, Object: q.String(), Err: verbs.ErrUnsupported, Detail: wr.Opcode.String() + ": package uverbs does not have requests of IBTA release 1.5"}
	}
	if wr.Opcode == verbs.WRSendWithInv {
		binary.NativeEndian.PutUint32(e.immOrKey[:], wr.InvKey)
	} else {
		binary.BigEndian.PutUint32(e.immOrKey[:], wr.Imm)
	}
	return q.storeData(e, wr)
}

// storeData stores the data of a request, or its scatter/gather list, behind the element's head.
func (q *queuePair) storeData(e *sendElement, wr *verbs.SendWR) error {
	const op = "post send"
	behind := unsafe.Add(unsafe.Pointer(e), unsafe.Sizeof(*e))
	var length uint64
	if wr.Flags&verbs.SendInline != 0 {
		length = uint64(len(wr.InlineData))
		switch {
		case wr.Opcode == verbs.WRRDMARead || wr.Opcode == verbs.WRAtomicCmpSwap || wr.Opcode == verbs.WRAtomicFetchAdd:
			return invalidError(op, q.String(), "%v receives data, which cannot be inline", wr.Opcode)
		case len(wr.SGList) != 0:
			return invalidError(op, q.String(), "inline data must be in InlineData, not in SGList")
		case len(wr.InlineData) > q.init.Cap.MaxInlineData:
			return limitError(op, q.String(), "inline data in bytes", len(wr.InlineData), q.init.Cap.MaxInlineData)
		}
		copy(unsafe.Slice((*byte)(behind), len(wr.InlineData)), wr.InlineData)
		e.data.count = 1
	} else {
		if len(wr.SGList) > q.init.Cap.MaxSendSGE {
			return limitError(op, q.String(), "number of SGEs", len(wr.SGList), q.init.Cap.MaxSendSGE)
		}
		length = listLength(wr.SGList)
		storeList(behind, wr.SGList)
		e.data.count = uint32(len(wr.SGList))
	}
	switch {
	case length > maxMessage:
		return limitError(op, q.String(), "message in bytes", length, maxMessage)
	case q.init.Type == verbs.UD && length > uint64(q.maxDatagram):
		return limitError(op, q.String(), "datagram in bytes", int(length), q.maxDatagram)
	}
	e.data.length, e.data.remaining = uint32(length), uint32(length)
	return nil
}

// listLength returns the sum of the lengths of a scatter/gather list.
func listLength(list []verbs.SGE) (n uint64) {
	for i := range list {
		n += uint64(list[i].Length)
	}
	return n
}

// maxMessage is the maximum message length in bytes (IBTA volume 1, 9.4.1). rxe itself has 2^31,
// too, but reports 2^23 as the maximum of a port.
const maxMessage = 1 << 31

// storeDestination stores the destination of a datagram.
func (q *queuePair) storeDestination(d *datagramRequest, wr *verbs.SendWR) error {
	const op = "post send"
	h, ok := wr.AH.(*addressHandle)
	if !ok || h == nil {
		return invalidError(op, q.String(), "AH must be an address handle of this device")
	}
	if h.pd != q.pd {
		return &verbs.OpError{Op: op, Object: q.String(), Err: verbs.ErrDomain, Detail: h.String()}
	}
	if h.closed.Load() {
		return closedError(op, h.String())
	}
	*d = datagramRequest{number: wr.RemoteQPN, qkey: wr.RemoteQKey, ah: h.number}
	return nil
}

// storeBind stores a binding of a memory window, whose key changes with the post.
func (q *queuePair) storeBind(e *sendElement, wr *verbs.SendWR) error {
	const op = "post send"
	b := &wr.Bind
	w, ok := b.MW.(*memoryWindow)
	if !ok || w == nil {
		return invalidError(op, q.String(), "Bind.MW must be a memory window of this device")
	}
	m, ok := b.MR.(*memoryRegion)
	if !ok || m == nil {
		return invalidError(op, q.String(), "Bind.MR must be a memory region of this device")
	}
	old := w.RKey()
	switch {
	case w.pd != q.pd || m.pd != q.pd:
		return &verbs.OpError{Op: op, Object: q.String(), Err: verbs.ErrDomain, Detail: "memory window or region"}
	case b.RKey&^0xff != old&^0xff:
		return invalidError(op, q.String(), "new key %#x of the window: want the upper 24 bits of %#x", b.RKey, old)
	case b.Access&^(verbs.AccessRemote|verbs.AccessZeroBased) != 0:
		return invalidError(op, q.String(), "access %v of the window: want remote access only", b.Access)
	case b.Access&verbs.AccessZeroBased != 0:
		return &verbs.OpError{Op: op, Object: q.String(), Err: verbs.ErrUnsupported, Detail: fmt.Sprintf("access %v of a window", b.Access)}
	}
	e.flags &^= uint32(verbs.SendInline)
	*(*windowRequest)(unsafe.Pointer(&e.request)) = windowRequest{addr: b.Addr, length: b.Length, lkey: m.lkey, rkey: old, newKey: b.RKey, access: uint32(b.Access)}
	w.rkey.Store(b.RKey)
	return nil
}
