package onesided

import (
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// sendQueue is the state of the operations on a rank. It counts the packets that have no reply,
// so that an Ack can acknowledge them cumulatively.
type sendQueue struct {
	transfers    []*transfer // transfers to send in packets, from first on
	first        int
	sent         uint64 // number of packets without a Reply
	acked        uint64 // of these, acknowledged
	ackRequested uint64 // of these, covered by a requested Ack
	lastMessage  uint64 // of these, the last that announced a message
	replies      int    // outstanding replies
	rdmaOps      int    // outstanding RDMA operations and messages
	reads        int    // of rdmaOps, those that write to local memory
	atomics      int    // of rdmaOps
	lockUpdates  int    // outstanding atomics on words of the lock
	flushes      int    // calls that wait for an Ack
	sending      bool   // in sendQueued
	err          error  // error of an operation, for the next call that waits for it
	tag          int32  // of the last message
}

// maxPacketsInFlight is the maximum number of packets in flight to a rank.
const maxPacketsInFlight = 32

func (o *sendQueue) canSend() bool { return int(o.sent-o.acked)+o.replies < maxPacketsInFlight }

func (o *sendQueue) queuedCount() int { return len(o.transfers) - o.first }

// pop removes the first queued transfer.
func (o *sendQueue) pop() {
	o.transfers[o.first] = nil
	if o.first++; o.first >= len(o.transfers)/2 { // compact
		n := copy(o.transfers, o.transfers[o.first:])
		clear(o.transfers[n:])
		o.transfers, o.first = o.transfers[:n], 0
	}
}

// allSent reports whether everything is sent and a later packet or atomic is ordered behind it.
// RDMA reads and messages are not ordered.
func (o *sendQueue) allSent() bool {
	return o.queuedCount() == 0 && o.reads == 0 && o.lastMessage <= o.acked
}

// locallyComplete reports whether all buffers may be reused.
func (o *sendQueue) locallyComplete() bool {
	return o.queuedCount() == 0 && o.replies == 0 && o.rdmaOps == 0
}

// packetsHandled reports whether the target has handled all packets.
func (o *sendQueue) packetsHandled() bool {
	return o.queuedCount() == 0 && o.replies == 0 && o.sent == o.acked
}

// remotelyComplete reports whether all operations are complete at the target.
func (o *sendQueue) remotelyComplete() bool { return o.packetsHandled() && o.rdmaOps == 0 }

// failQueued fails all operations on a lost rank.
func (w *Window) failQueued(p *peer, cause error) {
	o := &p.sendQueue
	for o.queuedCount() > 0 {
		t := o.transfers[o.first]
		o.pop()
		t.complete(cause)
	}
	for _, t := range w.pendingReplies {
		if t.peer == p {
			t.complete(cause)
		}
	}
	o.acked, o.ackRequested, o.replies = o.sent, o.sent, 0
}

// enqueueTransfer queues a transfer to be sent in packets.
func (w *Window) enqueueTransfer(core *protocol.Core, t *transfer) {
	if t.bytesLeft > 0 {
		w.lastID++
		t.id = w.lastID
		w.pendingReplies[t.id] = t
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
	o := &p.sendQueue
	if o.sending { // called from Active, by a reply of this rank itself
		return
	}
	o.sending = true
	// Accumulates wait for the atomics of the adapter in flight, which are not ordered with packets.
	for o.queuedCount() > 0 && o.canSend() && (o.atomics == 0 || !o.transfers[o.first].packet.isAccumulate()) {
		if err := w.sendElements(core, o.transfers[o.first]); err != nil {
			w.failQueued(p, err)
		}
	}
	o.sending = false
	if o.flushes > 0 && o.queuedCount() == 0 {
		w.requestAck(core, p)
	}
}

// countPacket counts a packet without a Reply. It requests an Ack if that is wanted, if none is
// outstanding, and after maxPacketsInFlight/2 packets.
func (o *sendQueue) countPacket(h *envelope.Header, wanted bool) {
	o.sent++
	if wanted || o.sent == o.acked+1 || o.sent-o.ackRequested >= maxPacketsInFlight/2 {
		h.Flags = envelope.Synchronous
		o.ackRequested = o.sent
	}
}

func (w *Window) handleReply(core *protocol.Core, p *peer, h *envelope.Header, payload []byte) error {
	t := w.pendingReplies[h.ID]
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

func (w *Window) handleAck(core *protocol.Core, p *peer, n uint64) error {
	o := &p.sendQueue
	if n < o.acked || n > o.sent {
		return errUnexpectedReply
	}
	o.acked = n
	w.sendQueued(core, p)
	return nil
}
