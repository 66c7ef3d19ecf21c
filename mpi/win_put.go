package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// A Place is the layout of the elements of an operation in the window of a target: target
// displacement, count and datatype of the standard, in elements of the operation's buffer, with
// the alignment gaps of a slice. The zero Place is At(0).
type Place struct{ place rma.Place }

// At returns a contiguous place at a displacement, for any number of elements.
func At(disp int) Place { return Place{rma.At(disp)} }

// Strided returns a place of count blocks of block elements, whose starts are stride elements
// apart (MPI_Type_vector). At(0).Strided(rows, 1, columns) is the column of a matrix.
func (p Place) Strided(count, block, stride int) Place {
	return Place{p.place.Strided(count, block, stride)}
}

// Indexed returns a place of blocks whose indices count from the displacement
// (MPI_Type_indexed). It does not keep blocks.
func (p Place) Indexed(blocks []Block) Place {
	list := make([]datatype.Block, len(blocks))
	for i, b := range blocks {
		list[i] = datatype.Block(b)
	}
	return Place{p.place.Indexed(list)}
}

// String returns the place for errors and logs.
func (p Place) String() string { return p.place.String() }

// Put writes elements to a place in the window of target (MPI_Put). The buffer belongs to the
// window until a flush or the end of the epoch.
func (w *Win) Put(b Buffer, target int, at Place) error {
	return w.startOp(rmaOp{name: "put", packet: packetPut, send: b.data, at: at.place}, target, nil)
}

// Rput is Put with a request, which is done when the buffer may be reused (MPI_Rput).
func (w *Win) Rput(b Buffer, target int, at Place) (*Request, error) {
	return w.startRequest(rmaOp{name: "rput", packet: packetPut, send: b.data, at: at.place}, target)
}

// Get reads elements from a place in the window of target (MPI_Get).
func (w *Win) Get(b Buffer, target int, at Place) error {
	return w.startOp(rmaOp{name: "get", packet: packetGet, recv: b.data, at: at.place}, target, nil)
}

// Rget is Get with a request, which is done when the elements have arrived (MPI_Rget).
func (w *Win) Rget(b Buffer, target int, at Place) (*Request, error) {
	return w.startRequest(rmaOp{name: "rget", packet: packetGet, recv: b.data, at: at.place}, target)
}

// rmaOp is a one-sided operation with its arguments.
type rmaOp struct {
	name                string
	packet              winPacket
	send, compare, recv datatype.Buffer
	at                  rma.Place
	op                  datatype.Op
}

// describeTarget returns the target of an operation, for errors.
func describeTarget(rank int, at rma.Place) string { return fmt.Sprintf("to %d at %v", rank, at) }

// rmaResult is the result of an operation with a Request. The engine's lock guards done and err.
type rmaResult struct {
	target int
	at     rma.Place
	done   bool
	err    error
}

// startRequest starts an operation with a Request.
func (w *Win) startRequest(o rmaOp, target int) (*Request, error) {
	r := &Request{comm: w.asComm(), op: o.name, rmaResult: &rmaResult{target: target, at: o.at}}
	if err := w.startOp(o, target, r.rmaResult); err != nil {
		r.neverStarted, r.err = true, err
	}
	return r, r.err
}

// startOp starts an operation.
func (w *Win) startOp(o rmaOp, target int, done *rmaResult) error {
	if err := w.tryOp(&o, target, done); err != nil {
		return w.fail(o.name, describeTarget(target, o.at), err)
	}
	return nil
}

// tryOp starts an operation, after a lookup of its region in a dynamic window.
func (w *Win) tryOp(o *rmaOp, target int, done *rmaResult) error {
	if err := o.checkBuffers(); err != nil {
		return err
	}
	for {
		unknown, err := w.startIfKnown(o, target, done)
		if err != nil || unknown == (rma.Span{}) {
			return err
		}
		if err := w.findRegion(target, unknown); err != nil {
			return err
		}
	}
}

// startIfKnown starts an operation, unless it is on memory of a dynamic window that must be
// looked up first: it then returns the span. An operation on ProcNull is done at once (MPI 4.1,
// 12.3).
func (w *Win) startIfKnown(o *rmaOp, target int, done *rmaResult) (unknown rma.Span, err error) {
	core, err := w.lockEngine()
	if err != nil {
		return unknown, err
	}
	defer w.eng.Unlock()
	switch {
	case w.broken != nil:
		return unknown, w.broken
	case target == ProcNull:
		if done != nil {
			done.done = true
		}
		return unknown, nil
	case target < 0 || target >= len(w.peers):
		return unknown, fmt.Errorf("%w: %d, want [0, %d)", ErrRank, target, len(w.peers))
	}
	p := &w.peers[target]
	if err := w.epochs.checkOperation(&p.epoch); err != nil {
		return unknown, err
	}
	b := o.elementBuffer()
	e, err := p.checkElements(b)
	region, at := &p.staticRegion, o.at
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
	t.packet, t.op, t.place, t.element, t.elements = o.packet, o.op, at, e, b.Count()
	t.send, t.compare, t.recv, t.result = o.send, o.compare, o.recv, done
	t.region = region
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
func (o *rmaOp) elementBuffer() datatype.Buffer {
	if o.packet == packetGet || o.send.Count() == 0 && o.op.Is(datatype.NoOp) {
		return o.recv
	}
	return o.send
}

// checkBuffers checks the buffers and the operation.
func (o *rmaOp) checkBuffers() error {
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
func (p *winPeer) checkElements(b datatype.Buffer) (rma.Element, error) {
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
		return e, fmt.Errorf("%w: elements of %v (%d bytes) in a window of %v (%d bytes); a window of bytes accepts all kinds", ErrType, b.Kind(), extent, p.kind, p.unit)
	}
	return e, nil
}

// checkRange returns an error unless the elements are inside of the window of a rank.
func (p *winPeer) checkRange(n, extent int, at *rma.Place) error {
	if p.unit == 0 {
		return fmt.Errorf("%w: window has elements of size 0", ErrRange)
	}
	return at.Validate(n, extent, p.unit, p.size)
}
