package onesided

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// An Operation is a one-sided operation with its arguments.
type Operation struct {
	packet  packetType
	single  bool            // FetchAndOp
	send    datatype.Buffer // elements to send
	compare datatype.Buffer // of CompareAndSwap
	recv    datatype.Buffer // destination of received elements
	At      rma.Place
	op      datatype.Op
}

// NewPut returns the operation that writes elements to a place.
func NewPut(b datatype.Buffer, at rma.Place) Operation {
	return Operation{packet: packetPut, send: b, At: at}
}

// NewGet returns the operation that reads elements from a place.
func NewGet(b datatype.Buffer, at rma.Place) Operation {
	return Operation{packet: packetGet, recv: b, At: at}
}

// NewAccumulate returns the operation that combines elements with those at a place.
func NewAccumulate(b datatype.Buffer, at rma.Place, op datatype.Op) Operation {
	return Operation{packet: packetAccumulate, send: b, At: at, op: op}
}

// NewGetAccumulate is NewAccumulate that also reads the elements before the operation into result.
func NewGetAccumulate(b, result datatype.Buffer, at rma.Place, op datatype.Op) Operation {
	return Operation{packet: packetGetAccumulate, send: b, recv: result, At: at, op: op}
}

// NewFetchAndOp is NewGetAccumulate of one element.
func NewFetchAndOp(b, result datatype.Buffer, disp int, op datatype.Op) Operation {
	return Operation{packet: packetGetAccumulate, single: true, send: b, recv: result, At: rma.At(disp), op: op}
}

// NewCompareAndSwap returns the operation that reads one element into result and replaces it by b
// if it is equal to compare.
func NewCompareAndSwap(b, compare, result datatype.Buffer, disp int) Operation {
	return Operation{packet: packetCompareAndSwap, send: b, compare: compare, recv: result, At: rma.At(disp), op: datatype.Replace}
}

// DescribeTarget returns the target of an operation, for errors.
func DescribeTarget(rank int, at rma.Place) string { return fmt.Sprintf("to %d at %v", rank, at) }

// A Result is the result of an operation. The engine's lock guards Done and Err.
type Result struct {
	Target int
	At     rma.Place
	Done   bool
	Err    error
}

// StartOperation starts an operation on a rank, after a lookup of its region in a dynamic window.
// result may be nil; it is done when the buffers may be reused. After an error nothing is started.
func (w *Window) StartOperation(o *Operation, target int, result *Result) error {
	if err := o.checkBuffers(); err != nil {
		return err
	}
	for {
		unknown, err := w.startIfKnown(o, target, result)
		if err != nil || unknown == (rma.Span{}) {
			return err
		}
		if err := w.findRegion(target, unknown); err != nil {
			return err
		}
	}
}

// startIfKnown starts an operation, unless it is on memory of a dynamic window that must be
// looked up first: it then returns the span. An operation on comm.ProcNull is done at once (MPI
// 4.1, 12.3).
func (w *Window) startIfKnown(o *Operation, target int, result *Result) (unknown rma.Span, err error) {
	core, err := w.lockEngine()
	if err != nil {
		return unknown, err
	}
	defer w.eng.Unlock()
	switch {
	case w.broken != nil:
		return unknown, w.broken
	case target == comm.ProcNull:
		if result != nil {
			result.Done = true
		}
		return unknown, nil
	case target < 0 || target >= len(w.peers):
		return unknown, fmt.Errorf("%w: %d, want [0, %d)", comm.ErrRank, target, len(w.peers))
	}
	p := &w.peers[target]
	if err := w.epochs.checkOperation(&p.epoch); err != nil {
		return unknown, err
	}
	b := o.elementBuffer()
	e, err := p.checkElements(b)
	region, at := &p.staticRegion, o.At
	switch {
	case err != nil || b.Count() == 0 || e.Size == 0:
	case w.dynamic == nil:
		err = p.checkRange(b.Count(), e.Extent, &at)
	default:
		region, at, unknown, err = p.locateTarget(b.Count(), e.Extent, at)
	}
	if err != nil || region == nil {
		return unknown, err
	}
	t := w.newTransfer(p)
	t.Operation, t.element, t.elements = *o, e, b.Count()
	t.At, t.region, t.result = at, region, result
	region.users++
	switch {
	case t.elements == 0 || e.Size == 0:
		t.complete(nil)
		return unknown, nil
	case o.packet == packetPut || o.packet == packetGet:
		return unknown, w.startCopy(core, t)
	}
	return unknown, w.startAccumulate(core, t)
}

// elementBuffer returns the buffer that defines the number of elements.
func (o *Operation) elementBuffer() datatype.Buffer {
	if o.packet == packetGet || o.send.Count() == 0 && o.op.Is(datatype.NoOp) {
		return o.recv
	}
	return o.send
}

// checkBuffers checks the buffers and the operation.
func (o *Operation) checkBuffers() error {
	if n := o.recv.Count(); o.single && n != 1 {
		return fmt.Errorf("%w: %d, want 1", datatype.ErrCount, n)
	}
	for _, b := range []datatype.Buffer{o.send, o.compare} {
		if err := b.Check(false); err != nil {
			return err
		}
	}
	if err := o.recv.Check(true); err != nil {
		return err
	}
	if o.packet.isAccumulate() {
		return o.checkAccumulateOp()
	}
	return nil
}

// checkElements returns the layout of the elements of a buffer in the window of a rank. Their
// kind must be that of the window.
func (p *peer) checkElements(b datatype.Buffer) (rma.Element, error) {
	extent, pieces := b.Element()
	e := rma.Element{Size: b.ElementSize(), Extent: extent, Pieces: pieces}
	if b.Count() == 0 {
		return e, nil
	}
	ok := false
	switch p.kind {
	case datatype.Byte, datatype.Uint8:
		ok = true
	case datatype.Struct:
		ok = extent == p.unit && (b.Kind() == datatype.Struct || b.Kind() >= datatype.PairInt16)
	default:
		ok = b.Kind() == p.kind
	}
	if !ok {
		return e, fmt.Errorf("%w: elements of %v (%d bytes) in a window of %v (%d bytes); a window of bytes accepts all kinds", datatype.ErrSignature, b.Kind(), extent, p.kind, p.unit)
	}
	return e, nil
}

// checkRange returns an error unless the elements are inside of the window of a rank.
func (p *peer) checkRange(n, extent int, at *rma.Place) error {
	if p.unit == 0 {
		return fmt.Errorf("%w: window has elements of size 0", rma.ErrRange)
	}
	return at.Validate(n, extent, p.unit, p.size)
}
