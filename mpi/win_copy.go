package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

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
		mem := w.own(t.region)[t.place.Offset(p.unit):][:bytes]
		if t.what == packetPut {
			t.send.Pack(mem)
		} else {
			t.recv.Unpack(mem)
		}
		t.finish(nil)
	case t.region.direct && row:
		t.stage()
		w.adapter(core, t, t, t.place.Offset(p.unit), t.mem)
	case t.region.direct && dense && bytes/t.place.Blocks() >= directPiece:
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
	key := whole.region.key
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
	w.packet = w.out.Append(t.region.name(w.packet[:0]))
	t.move(t)
	t.p.Buf = t.mem
	t.p.Envelope = w.envelope(what, own, p.out.tag)
	h := envelope.Header{Context: w.comm.id, Tag: int32(what), ID: uint64(p.out.tag), Length: uint64(len(t.mem))}
	if what == packetSend {
		p.out.count(&h, false)
		p.out.message = p.out.sent
	}
	_ = core.SendActive(p.job, h, w.packet) // if the rank is lost, what follows says so
	if t.what == packetGet {
		core.Receive(&t.p)
	} else {
		core.Send(&t.p)
	}
}
