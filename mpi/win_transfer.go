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
	region *remoteRegion // of the rank's
	packet winPacket
	op     Op

	send    Buffer // elements that go
	compare Buffer // of CompareAndSwap
	recv    Buffer // where those that come belong
	staging []byte // where they come in
	word    [8]byte

	place     rma.Place
	element   rma.Element
	cursor    rma.Cursor
	elements  int
	next      int    // element that has not left
	bytesLeft int    // bytes that have not come
	id        uint64 // of replies

	parts  int   // that the adapter moves and are not done
	err    error // of one of them
	parent *transfer
	result *rmaResult // of a Request
	name   string
	then   func(*protocol.Request)
}

// newTransfer returns a transfer to a rank that nothing is known of yet.
func (w *Win) newTransfer(p *winPeer) *transfer {
	var t *transfer
	if n := len(w.idleTransfers) - 1; n >= 0 {
		t = w.idleTransfers[n]
		w.idleTransfers[n] = nil
		w.idleTransfers = w.idleTransfers[:n]
	} else {
		t = &transfer{}
		t.then = t.onPartDone
	}
	t.w, t.peer, t.parent = w, p, t
	return t
}

// maxIdleTransfers is how many are kept to be used again.
const maxIdleTransfers = 256

// complete ends a transfer: it is used again.
func (t *transfer) complete(err error) {
	w := t.w
	if err == nil && t.staging != nil {
		if mem, ok := t.recv.Contiguous(); !ok || len(mem) > 0 && &mem[0] != &t.staging[0] {
			t.recv.Unpack(t.staging)
		}
	}
	if t.id != 0 {
		delete(w.pendingReplies, t.id)
	}
	if err != nil && t.peer.sendQueue.err == nil {
		t.peer.sendQueue.err = err
	}
	if t.result != nil {
		t.result.done = true
		if err != nil {
			t.result.err = w.fail(t.name, describeTarget(t.peer.rank, t.originalPlace()), err)
		}
	}
	g := t.region
	*t = transfer{then: t.then}
	if len(w.idleTransfers) < maxIdleTransfers {
		w.idleTransfers = append(w.idleTransfers, t)
	}
	if g != nil { // not a part of another
		g.users--
		w.returnIfUnused(w.eng.Core(), g)
	}
}

// originalPlace is where the caller has said that it goes.
func (t *transfer) originalPlace() Place {
	if t.region == nil {
		return t.place
	}
	return t.place.WithDisp(t.place.Disp() + int(uintptr(t.region.span.Addr)))
}

// onPartDone is called when the adapter, or a message, has moved a part of a transfer.
func (t *transfer) onPartDone(r *protocol.Request) {
	w, p, whole, err := t.w, t.peer, t.parent, r.Err
	p.sendQueue.rdmaOps--
	if whole.packet != packetPut {
		p.sendQueue.reads--
	}
	if whole.packet.isAccumulate() { // a word
		p.sendQueue.atomics--
		whole.staging = t.word[:]
	}
	if whole.err == nil {
		whole.err = err
	}
	if t != whole {
		t.complete(nil)
	}
	whole.completePart()
	w.sendQueued(w.eng.Core(), p)
}

// startPart makes a transfer that of one part of itself, or of another.
func (t *transfer) startPart(whole *transfer) {
	t.parent = whole
	whole.parts++
	o := &t.peer.sendQueue
	o.rdmaOps++
	if whole.packet != packetPut {
		o.reads++
	}
	if whole.packet.isAccumulate() {
		o.atomics++
	}
	t.p.Dest, t.p.OnDone = t.peer.job, t.then
}

// completePart is the end of a part. With the last one the transfer is done.
func (t *transfer) completePart() {
	if t.parts--; t.parts == 0 {
		t.complete(t.err)
	}
}
