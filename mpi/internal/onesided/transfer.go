package onesided

import (
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// transfer is an operation in progress: an RDMA operation, a message, or a series of packets
// and replies.
type transfer struct {
	p      protocol.Request // RDMA operation or message
	w      *Window
	peer   *peer
	region *remoteRegion // at the target; nil for a part of another transfer
	packet packetType
	op     datatype.Op

	send    datatype.Buffer // elements to send
	compare datatype.Buffer // of CompareAndSwap
	recv    datatype.Buffer // destination of received elements
	staging []byte          // contiguous memory of the elements
	word    [8]byte

	place     rma.Place
	element   rma.Element
	cursor    rma.Cursor
	elements  int
	next      int    // first element not sent
	bytesLeft int    // bytes not received
	id        uint64 // in replies

	parts  int       // outstanding RDMA operations
	err    error     // first error of a part
	parent *transfer // the transfer that this one is a part of, or itself
	result *Result   // of a Request, or nil
	then   func(*protocol.Request)
}

// newTransfer returns an empty transfer to a rank.
func (w *Window) newTransfer(p *peer) *transfer {
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

// maxIdleTransfers is the maximum number of idle transfers kept for reuse.
const maxIdleTransfers = 256

// complete completes a transfer and recycles it.
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
		t.result.Done, t.result.Err = true, err
	}
	g := t.region
	*t = transfer{then: t.then}
	if len(w.idleTransfers) < maxIdleTransfers {
		w.idleTransfers = append(w.idleTransfers, t)
	}
	if g != nil { // not a part of another transfer
		g.users--
		w.returnIfUnused(w.eng.Core(), g)
	}
}

// onPartDone is called when an RDMA operation or a message of a transfer is done.
func (t *transfer) onPartDone(r *protocol.Request) {
	w, p, parent, err := t.w, t.peer, t.parent, r.Err
	p.sendQueue.rdmaOps--
	if parent.packet != packetPut {
		p.sendQueue.reads--
	}
	if parent.packet.isAccumulate() { // an atomic on one word
		p.sendQueue.atomics--
		parent.staging = t.word[:]
	}
	if parent.err == nil {
		parent.err = err
	}
	if t != parent {
		t.complete(nil)
	}
	parent.completePart()
	w.sendQueued(w.eng.Core(), p)
}

// startPart makes t a part of parent, or of itself.
func (t *transfer) startPart(parent *transfer) {
	t.parent = parent
	parent.parts++
	o := &t.peer.sendQueue
	o.rdmaOps++
	if parent.packet != packetPut {
		o.reads++
	}
	if parent.packet.isAccumulate() {
		o.atomics++
	}
	t.p.Dest, t.p.OnDone = t.peer.job, t.then
}

// completePart ends a part. The last part completes the transfer.
func (t *transfer) completePart() {
	if t.parts--; t.parts == 0 {
		t.complete(t.err)
	}
}
