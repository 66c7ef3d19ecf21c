package mpi

import (
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// transfer is an operation under way: one of the adapter's, or packets that its
// elements go in, and replies that they come in.
type transfer struct {
	p      protocol.Request // of the adapter, or a message
	w      *Win
	peer   *winPeer
	region *region // of the rank's
	what   winPacket
	op     Op

	send    Buffer // elements that go
	compare Buffer // of CompareAndSwap
	recv    Buffer // where those that come belong
	mem     []byte // where they come in
	word    [8]byte

	place    rma.Place
	element  rma.Element
	cursor   rma.Cursor
	elements int
	next     int    // element that has not left
	left     int    // bytes that have not come
	number   uint64 // of replies

	parts int   // that the adapter moves and are not done
	err   error // of one of them
	whole *transfer
	done  *remote // of a Request
	name  string
	then  func(*protocol.Request)
}

// take returns a transfer to a rank that nothing is known of yet.
func (w *Win) take(p *winPeer) *transfer {
	var t *transfer
	if n := len(w.free) - 1; n >= 0 {
		t = w.free[n]
		w.free[n] = nil
		w.free = w.free[:n]
	} else {
		t = &transfer{}
		t.then = t.moved
	}
	t.w, t.peer, t.whole = w, p, t
	return t
}

// keptTransfers is how many are kept to be used again.
const keptTransfers = 256

// finish ends a transfer: it is used again.
func (t *transfer) finish(err error) {
	w := t.w
	if err == nil && t.mem != nil {
		if mem, ok := t.recv.Contiguous(); !ok || len(mem) > 0 && &mem[0] != &t.mem[0] {
			t.recv.Unpack(t.mem)
		}
	}
	if t.number != 0 {
		delete(w.pending, t.number)
	}
	if err != nil && t.peer.out.err == nil {
		t.peer.out.err = err
	}
	if t.done != nil {
		t.done.done = true
		if err != nil {
			t.done.err = w.fail(t.name, with(t.peer.rank, t.from()), err)
		}
	}
	g := t.region
	*t = transfer{then: t.then}
	if len(w.free) < keptTransfers {
		w.free = append(w.free, t)
	}
	if g != nil { // not a part of another
		g.users--
		w.giveBack(w.eng.Core(), g)
	}
}

// from is where the caller has said that it goes.
func (t *transfer) from() Place {
	if t.region == nil {
		return t.place
	}
	return t.place.From(t.place.Disp() + int(uintptr(t.region.span.Addr)))
}

// moved is called when the adapter, or a message, has moved a part of a transfer.
func (t *transfer) moved(r *protocol.Request) {
	w, p, whole, err := t.w, t.peer, t.whole, r.Err
	p.out.moves--
	if whole.what != packetPut {
		p.out.reads--
	}
	if whole.what.combines() { // a word
		p.out.atomics--
		whole.mem = t.word[:]
	}
	if whole.err == nil {
		whole.err = err
	}
	if t != whole {
		t.finish(nil)
	}
	whole.release()
	w.push(w.eng.Core(), p)
}

// move makes a transfer that of one part of itself, or of another.
func (t *transfer) move(whole *transfer) {
	t.whole = whole
	whole.parts++
	o := &t.peer.out
	o.moves++
	if whole.what != packetPut {
		o.reads++
	}
	if whole.what.combines() {
		o.atomics++
	}
	t.p.Dest, t.p.OnDone = t.peer.job, t.then
}

// release is the end of a part. With the last one the transfer is done.
func (t *transfer) release() {
	if t.parts--; t.parts == 0 {
		t.finish(t.err)
	}
}
