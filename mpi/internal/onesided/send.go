package onesided

import (
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// enqueueTransfer queues a transfer to be sent in packets.
func (w *Window) enqueueTransfer(core *protocol.Core, t *transfer) {
	if t.bytesLeft > 0 {
		t.id = w.pending.newID()
		w.pending.transfers[t.id] = t
		if mem, ok := t.recv.Contiguous(); ok {
			t.staging = mem
		} else {
			t.staging = make([]byte, t.recv.Size())
		}
	}
	t.peer.sendQueue.transfers = append(t.peer.sendQueue.transfers, t)
	w.sendQueued(core, t.peer)
}

// sendQueued sends packets up to maxPacketsInFlight.
func (w *Window) sendQueued(core *protocol.Core, p *peer) {
	q := &p.sendQueue
	if q.sending { // called from Active, by a reply of this rank itself
		return
	}
	q.sending = true
	// Accumulates wait for the atomics of the adapter in flight, which are not ordered with packets.
	for q.queuedCount() > 0 && q.canSend() && (q.atomics == 0 || !q.transfers[q.first].packet.isAccumulate()) {
		if err := w.sendElements(core, q.transfers[q.first]); err != nil {
			w.failQueued(p, err)
		}
	}
	q.sending = false
	if q.flushes > 0 && q.queuedCount() == 0 {
		w.requestAck(core, p)
	}
}

// sendElements sends as many elements as a packet holds. It completes a transfer without
// replies with its last packet.
func (w *Window) sendElements(core *protocol.Core, t *transfer) error {
	q, e := &t.peer.sendQueue, &t.element
	limit := w.packetLimit(t.peer)
	carries := e.Size // bytes in the packet for each element
	switch t.packet {
	case packetGet:
		carries = 0
	case packetCompareAndSwap:
		carries = 2 * e.Size
	}
	var n int
	out := &w.buffers.out
	out.Element = *e
	out.Vectors, n = t.nextVectors(out.Vectors[:0], limit, carries)
	from := t.next
	t.next += n
	b := out.Append(t.region.appendID(w.buffers.packet[:0]))
	if t.packet != packetGet {
		b = appendPacked(b, t.send.Slice(from, t.next))
	}
	if t.packet == packetCompareAndSwap {
		b = appendPacked(b, t.compare)
	}
	w.buffers.packet = b
	last := t.next == t.elements
	h := envelope.Header{Context: w.comm.ContextID, Tag: t.packet.encodeTag(t.elementKind(), t.op), ID: t.id, Length: uint64(from * e.Size)}
	if t.id != 0 {
		q.replies++
	} else {
		q.countPacket(&h, last && q.queuedCount() == 1 && q.flushes > 0)
	}
	job, replies := t.peer.job, t.id != 0
	if last {
		q.popTransfer()
	}
	err := core.SendActive(job, h, b) // to this rank itself: replies arrive before it returns
	if last && !replies {
		t.complete(err)
	}
	if cap(w.buffers.packet) > maxKeptPacket {
		w.buffers.packet = nil
	}
	return err
}

// maxKeptPacket is the maximum size of a packet buffer that is kept, in bytes.
const maxKeptPacket = 1 << 20

// requestAck requests an Ack for all packets sent so far, unless one is outstanding.
func (w *Window) requestAck(core *protocol.Core, p *peer) {
	q := &p.sendQueue
	if q.ackRequested < q.sent {
		q.ackRequested = q.sent
		w.sendSignal(core, p, packetAckRequest, 0)
	}
}

// handleAck handles the acknowledgement of the first n packets.
func (w *Window) handleAck(core *protocol.Core, p *peer, n uint64) error {
	q := &p.sendQueue
	if n < q.acked || n > q.sent {
		return errUnexpectedReply
	}
	q.acked = n
	w.sendQueued(core, p)
	return nil
}

// handleReply stores elements that a transfer waits for.
func (w *Window) handleReply(core *protocol.Core, p *peer, h *envelope.Header, payload []byte) error {
	t := w.pending.transfers[h.ID]
	if t == nil || t.peer != p || len(payload) == 0 || len(payload) > t.bytesLeft || h.Length > uint64(len(t.staging)-len(payload)) {
		return errUnexpectedReply
	}
	copy(t.staging[h.Length:], payload)
	p.sendQueue.replies--
	if t.bytesLeft -= len(payload); t.bytesLeft == 0 {
		t.complete(nil)
	}
	w.sendQueued(core, p)
	return nil
}

// failQueued fails all operations on a lost rank.
func (w *Window) failQueued(p *peer, cause error) {
	q := &p.sendQueue
	for q.queuedCount() > 0 {
		t := q.transfers[q.first]
		q.popTransfer()
		t.complete(cause)
	}
	for _, t := range w.pending.transfers {
		if t.peer == p {
			t.complete(cause)
		}
	}
	q.acked, q.ackRequested, q.replies = q.sent, q.sent, 0
}

// startPart makes t a part of parent, or of itself.
func (t *transfer) startPart(parent *transfer) {
	t.parent = parent
	parent.parts++
	q := &t.peer.sendQueue
	q.rdmaOps++
	if parent.packet != packetPut {
		q.reads++
	}
	if parent.packet.isAccumulate() {
		q.atomics++
	}
	if t.onDone == nil {
		t.onDone = t.onPartDone
	}
	t.request.Dest, t.request.OnDone = t.peer.job, t.onDone
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

// completePart ends a part. The last part completes the transfer.
func (t *transfer) completePart() {
	if t.parts--; t.parts == 0 {
		t.complete(t.err)
	}
}
