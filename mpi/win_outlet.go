package mpi

import (
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// sendQueue is what goes to a rank. Packets that are not replied to are counted, so
// that Ack can say up to which they have been dealt with.
type sendQueue struct {
	transfers    []*transfer // that go in packets and have not left, from first on
	first        int
	sent         uint64 // packets without a Reply
	acked        uint64 // of them
	ackRequested uint64 // of them: Ack will tell when so many are
	lastMessage  uint64 // of them: the last that announced a message
	replies      int    // that have not come
	rdmaOps      int    // of the adapter, and messages, that are not done
	reads        int    // of these: what comes here
	atomics      int    // of these
	lockUpdates  int    // of its lock that are being changed
	flushes      int    // calls that wait for Ack
	sending      bool   // in push
	err          error  // of an operation, for the next call that waits for it
	tag          int32  // of the last message
}

// maxPacketsInFlight is how many packets may be under way to a rank.
const maxPacketsInFlight = 32

func (o *sendQueue) canSend() bool { return int(o.sent-o.acked)+o.replies < maxPacketsInFlight }

func (o *sendQueue) queuedCount() int { return len(o.transfers) - o.first }

// pop takes the first of those that are queued.
func (o *sendQueue) pop() {
	o.transfers[o.first] = nil
	if o.first++; o.first >= len(o.transfers)/2 { // so many of them are gone
		n := copy(o.transfers, o.transfers[o.first:])
		clear(o.transfers[n:])
		o.transfers, o.first = o.transfers[:n], 0
	}
}

// allSent reports whether all has left, and what leaves now is behind it. That is not
// so of what the adapter reads, and of messages.
func (o *sendQueue) allSent() bool {
	return o.queuedCount() == 0 && o.reads == 0 && o.lastMessage <= o.acked
}

// locallyComplete reports whether all buffers are the program's again.
func (o *sendQueue) locallyComplete() bool {
	return o.queuedCount() == 0 && o.replies == 0 && o.rdmaOps == 0
}

// packetsHandled reports whether there are no packets that have not been dealt with.
func (o *sendQueue) packetsHandled() bool {
	return o.queuedCount() == 0 && o.replies == 0 && o.sent == o.acked
}

// remotelyComplete reports whether all is done.
func (o *sendQueue) remotelyComplete() bool { return o.packetsHandled() && o.rdmaOps == 0 }

// failQueued ends everything that goes to a lost rank.
func (w *Win) failQueued(p *winPeer, why error) {
	o := &p.sendQueue
	for o.queuedCount() > 0 {
		t := o.transfers[o.first]
		o.pop()
		t.complete(why)
	}
	for _, t := range w.pendingReplies {
		if t.peer == p {
			t.complete(why)
		}
	}
	o.acked, o.ackRequested, o.replies = o.sent, o.sent, 0
}

// enqueueTransfer lets a transfer leave in packets.
func (w *Win) enqueueTransfer(core *protocol.Core, t *transfer) {
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

// sendQueued lets packets leave while there is room for them.
func (w *Win) sendQueued(core *protocol.Core, p *winPeer) {
	o := &p.sendQueue
	if o.sending { // a reply of our own
		return
	}
	o.sending = true
	// An atomic of the adapter may be late, but not behind one that follows.
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

// countPacket counts a packet without a Reply. It asks for Ack if that is wanted, if
// there is none under way, and after many packets.
func (o *sendQueue) countPacket(h *envelope.Header, wanted bool) {
	o.sent++
	if wanted || o.sent == o.acked+1 || o.sent-o.ackRequested >= maxPacketsInFlight/2 {
		h.Flags = envelope.Synchronous
		o.ackRequested = o.sent
	}
}

// handleReply handles a Reply.
func (w *Win) handleReply(core *protocol.Core, p *winPeer, h *envelope.Header, payload []byte) error {
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

// handleAck handles an Ack.
func (w *Win) handleAck(core *protocol.Core, p *winPeer, n uint64) error {
	o := &p.sendQueue
	if n < o.acked || n > o.sent {
		return errUnexpectedReply
	}
	o.acked = n
	w.sendQueued(core, p)
	return nil
}
