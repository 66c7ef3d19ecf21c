package mpi

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/datatype"
	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/protocol"
	"github.com/softrnic/softrnic/mpi/rma"
)

// Place is where the elements of an operation lie in a target's window.
type Place = rma.Place

// At is a place where elements lie one behind the other, from a displacement on.
// At(0).Strided(rows, 1, columns) is the column of a matrix, At(0).Indexed(blocks)
// are some blocks: in elements of the operation's buffer, with the gaps between
// them that a slice has.
func At(disp int) Place { return rma.At(disp) }

// Put writes elements to a place in the window of a rank (MPI_Put). They belong to
// the window until the rank is flushed, or the epoch ends.
func (w *Win) Put(b Buffer, target int, at Place) error {
	return w.begin(operating{name: "put", what: packetPut, send: b, at: at}, target, nil)
}

// Rput is Put with a request, which is done when the buffer is the program's again
// (MPI_Rput).
func (w *Win) Rput(b Buffer, target int, at Place) (*Request, error) {
	return w.request(operating{name: "rput", what: packetPut, send: b, at: at}, target)
}

// Get reads elements from a place in the window of a rank (MPI_Get).
func (w *Win) Get(b Buffer, target int, at Place) error {
	return w.begin(operating{name: "get", what: packetGet, recv: b, at: at}, target, nil)
}

// Rget is Get with a request, which is done when the elements are there (MPI_Rget).
func (w *Win) Rget(b Buffer, target int, at Place) (*Request, error) {
	return w.request(operating{name: "rget", what: packetGet, recv: b, at: at}, target)
}

// operating is a call that begins an operation.
type operating struct {
	name                string
	what                winPacket
	send, compare, recv Buffer
	at                  Place
	op                  Op
}

// with says whom an operation is with, for errors.
func with(rank int, at Place) string { return fmt.Sprintf("to %d at %v", rank, at) }

// remote is what becomes of an operation that has a Request. The engine's lock
// guards it.
type remote struct {
	done bool
	err  error
}

// request begins an operation that has a Request.
func (w *Win) request(o operating, target int) (*Request, error) {
	r := &Request{comm: w.comm, op: o.name, remote: &remote{}}
	return r, w.begin(o, target, r.remote)
}

// begin begins an operation.
func (w *Win) begin(o operating, target int, done *remote) error {
	if err := w.try(&o, target, done); err != nil {
		if done != nil {
			done.done, done.err = true, err
		}
		return w.fail(o.name, with(target, o.at), err)
	}
	return nil
}

func (w *Win) try(o *operating, target int, done *remote) error {
	if err := o.check(); err != nil {
		return err
	}
	if target == ProcNull {
		if done != nil {
			done.done = true
		}
		return nil
	}
	core, err := w.lock()
	if err != nil {
		return err
	}
	defer w.eng.Unlock()
	switch {
	case w.broken != nil:
		return w.broken
	case target < 0 || target >= len(w.peers):
		return fmt.Errorf("%w: %d, there are %d", ErrRank, target, len(w.peers))
	}
	p := &w.peers[target]
	if err := w.epochs.operate(&p.epoch); err != nil {
		return err
	}
	b := o.elements()
	e, err := p.fit(b, &o.at)
	if err != nil {
		return err
	}
	t := w.take(p)
	t.what, t.op, t.place, t.element, t.elements = o.what, o.op, o.at, e, b.Count()
	t.send, t.compare, t.recv, t.done, t.name = o.send, o.compare, o.recv, done, o.name
	switch {
	case t.elements == 0 || e.Size == 0:
		t.finish(nil)
		return nil
	case o.what == packetPut || o.what == packetGet:
		return w.copy(core, t)
	}
	return w.combine(core, t)
}

// elements is the buffer that says how many elements there are.
func (o *operating) elements() Buffer {
	if o.what == packetGet || o.send.Count() == 0 && same(o.op, NoOp) {
		return o.recv
	}
	return o.send
}

// check looks at the buffers.
func (o *operating) check() error {
	for _, b := range []Buffer{o.send, o.compare} {
		if err := b.Err(); err != nil {
			return fmt.Errorf("%w: %w", ErrBuffer, err)
		}
	}
	if err := o.recv.RecvErr(); err != nil {
		return fmt.Errorf("%w: %w", ErrBuffer, err)
	}
	if o.what.combines() {
		return o.checkOp()
	}
	return nil
}

// fit is how elements of a buffer lie in the window of a rank, where they have to
// be of its kind and inside of it.
func (p *winPeer) fit(b Buffer, at *Place) (rma.Element, error) {
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
		return e, fmt.Errorf("%w: %v, %d bytes each, of a window of %v, %d bytes each; one of bytes takes all", ErrType, b.Kind(), extent, p.kind, p.unit)
	}
	if p.unit == 0 {
		return e, fmt.Errorf("%w: its elements have no bytes", ErrRange)
	}
	err := at.Fit(b.Count(), extent, p.unit, p.size)
	switch {
	case errors.Is(err, rma.ErrCount):
		err = fmt.Errorf("%w: %w", ErrCount, err)
	case errors.Is(err, datatype.ErrLayout):
		err = fmt.Errorf("%w: %w", ErrBuffer, err)
	}
	return e, err
}

// Operations on pieces from this many bytes on go by the adapter one by one, if
// they lie in pieces; shorter ones together, in packets.
const directPiece = 1 << 10

// copy begins a Put or a Get: by the adapter, if the elements lie in one piece, or
// in few; as a message, if the adapter shall not do it and they are many, unless there
// are too many of those; else in packets.
func (w *Win) copy(core *protocol.Core, t *transfer) error {
	p, bytes := t.peer, t.elements*t.element.Size
	dense := len(t.element.Pieces) == 0
	row := dense && t.place.Row()
	own := p.rank == w.comm.rank
	switch {
	case own && row:
		mem := w.mem.Bytes[t.place.Offset(p.unit):][:bytes]
		if t.what == packetPut {
			t.send.Pack(mem)
		} else {
			t.recv.Unpack(mem)
		}
		t.finish(nil)
	case p.direct && row:
		t.stage()
		w.adapter(core, t, t, t.place.Offset(p.unit), t.mem)
	case p.direct && dense && bytes/t.place.Blocks() >= directPiece:
		w.pieces(core, t)
	case !own && row && bytes > w.limit(p)-t.element.Overhead(1) && p.out.moves < maxMessages:
		w.message(core, t)
	case !t.fits():
		err := fmt.Errorf("%w: an element of %d bytes is more than a packet takes; raise Options.RDMA.Eager", ErrType, t.element.Size)
		t.done = nil
		t.finish(nil)
		return err
	default:
		if t.what == packetGet {
			t.left = bytes
		}
		w.queue(core, t)
	}
	return nil
}

// stage gives a transfer its memory in one piece: the buffer's, or a copy.
func (t *transfer) stage() {
	b := t.recv
	if t.what == packetPut {
		b = t.send
	}
	mem, ok := b.Contiguous()
	if !ok {
		mem = make([]byte, b.Size())
		if t.what == packetPut {
			b.Pack(mem)
		}
	}
	t.mem = mem
}

// adapter lets the adapter move a part of a transfer.
func (w *Win) adapter(core *protocol.Core, whole, t *transfer, off int, mem []byte) {
	t.move(whole)
	t.p.Buf = mem
	key := t.peer.memory
	key.Addr += uint64(off)
	if whole.what == packetPut {
		core.Put(&t.p, key)
	} else {
		core.Get(&t.p, key)
	}
}

// pieces lets the adapter move a transfer piece by piece.
func (w *Win) pieces(core *protocol.Core, t *transfer) {
	t.stage()
	t.parts++ // until all have begun
	e := &t.element
	var list [16]rma.Vector
	for mem := t.mem; t.next < t.elements; {
		vectors, n := t.place.Next(&t.cursor, list[:0], t.elements-t.next, e.Extent, t.peer.unit)
		t.next += n
		for _, v := range vectors {
			for i := range v.Count {
				n := v.N * e.Size
				w.adapter(core, t, w.take(t.peer), v.Off+i*v.Stride, mem[:n])
				mem = mem[n:]
			}
		}
	}
	t.release()
}

// message lets the elements go as a message between the ranks.
func (w *Win) message(core *protocol.Core, t *transfer) {
	t.stage()
	p := t.peer
	p.out.tag = (p.out.tag + 1) & MaxTag
	what, own := packetSend, &w.peers[w.comm.rank]
	if t.what == packetGet {
		what, own = packetFetch, p
	}
	w.out = rma.Target{Element: rma.Plain(1), Vectors: append(w.out.Vectors[:0], rma.Vector{Off: t.place.Offset(p.unit), N: len(t.mem), Count: 1})}
	w.packet = w.out.Append(w.packet[:0])
	t.move(t)
	t.p.Buf = t.mem
	t.p.Envelope = w.envelope(what, own, p.out.tag)
	h := envelope.Header{Context: w.comm.id, Tag: int32(what), ID: uint64(p.out.tag), Length: uint64(len(t.mem))}
	if what == packetSend {
		p.out.count(&h, false)
		p.out.message = p.out.sent
	}
	_ = core.Active(p.job, h, w.packet) // if the rank is lost, what follows says so
	if t.what == packetGet {
		core.Receive(&t.p)
	} else {
		core.Send(&t.p)
	}
}
