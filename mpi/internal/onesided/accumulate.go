package onesided

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// checkAccumulateOp checks the operation and the kinds of the elements.
func (o *Operation) checkAccumulateOp() error {
	b := o.elementBuffer()
	if _, ok := o.op.Code(); !ok {
		return fmt.Errorf("%w: %v is not predefined", datatype.ErrOp, o.op)
	}
	if o.packet == packetAccumulate && o.op.Is(datatype.NoOp) { // MPI 4.1, 12.3.4
		return fmt.Errorf("%w: %v needs a result buffer", datatype.ErrOp, o.op)
	}
	if err := o.op.Fits(b); err != nil {
		return err
	}
	if b.Kind() == datatype.Struct {
		return fmt.Errorf("%w: structs cannot be accumulated", datatype.ErrSignature)
	}
	if o.packet == packetAccumulate {
		return nil
	}
	others := []datatype.Buffer{o.recv}
	if o.packet == packetCompareAndSwap {
		if b.Count() != 1 {
			return fmt.Errorf("%w: %d, want 1", datatype.ErrCount, b.Count())
		}
		if err := rma.CheckSwap(b.Kind()); err != nil {
			return err
		}
		others = append(others, o.compare)
	}
	for _, x := range others {
		if x.Count() != b.Count() || x.Kind() != b.Kind() {
			return fmt.Errorf("%w: %s and %s", datatype.ErrSignature, b.Describe(), x.Describe())
		}
	}
	return nil
}

// startAccumulate starts an operation that combines elements: with the atomics of the adapter
// if it has the operation, for a single word, else in packets. The target may handle packets in
// flight after a later atomic, so atomics are used only if none is outstanding: the operations
// of an origin on a place are ordered.
func (w *Window) startAccumulate(core *protocol.Core, t *transfer) error {
	p := t.peer
	atomic, ok := t.adapterAtomic()
	if ok && p.atomics && t.region.direct && p.sendQueue.packetsHandled() {
		key := t.region.key
		key.Addr += uint64(t.At.Offset(p.unit))
		if rma.IsAtomicWord(t.send.Kind(), key.Addr) || t.send.Count() == 0 && rma.IsAtomicWord(t.recv.Kind(), key.Addr) {
			t.startPart(t)
			t.request.Buf = t.word[:]
			core.Atomic(&t.request, key, atomic)
			return nil
		}
	}
	if !t.fitsPacket() {
		err := fmt.Errorf("%w: element of %d bytes exceeds a packet; raise Options.RDMA.Eager", datatype.ErrSignature, t.element.Size)
		t.result = nil
		t.complete(nil)
		return err
	}
	if t.send.Count() == 0 { // NoOp
		t.send = t.recv
	}
	if t.packet != packetAccumulate {
		t.bytesLeft = t.elements * t.element.Size
	}
	w.enqueueTransfer(core, t)
	return nil
}

// adapterAtomic returns the atomic of the adapter that is equivalent to the operation.
func (t *transfer) adapterAtomic() (a protocol.Atomic, ok bool) {
	switch {
	case t.elements != 1 || t.element.Size != 8 || !t.At.IsContiguous():
		return a, false
	case t.packet == packetCompareAndSwap:
		return protocol.Atomic{Swap: true, Operand: wordOf(t.compare), New: wordOf(t.send)}, true
	case t.op.Is(datatype.NoOp):
		return a, true
	}
	return protocol.Atomic{Operand: wordOf(t.send)}, t.op.Is(datatype.Sum)
}

// wordOf returns the first element of a buffer.
func wordOf(b datatype.Buffer) uint64 {
	var word [8]byte
	b.Slice(0, min(1, b.Count())).Pack(word[:])
	return binary.NativeEndian.Uint64(word[:])
}
