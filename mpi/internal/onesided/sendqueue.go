package onesided

import "github.com/softrnic/softrnic/mpi/internal/envelope"

// A sendQueue is the state of the operations on a rank. It counts the packets that have no reply,
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

// canSend reports whether another packet may be in flight.
func (q *sendQueue) canSend() bool { return int(q.sent-q.acked)+q.replies < maxPacketsInFlight }

// queuedCount returns the number of queued transfers.
func (q *sendQueue) queuedCount() int { return len(q.transfers) - q.first }

// popTransfer removes the first queued transfer.
func (q *sendQueue) popTransfer() {
	q.transfers[q.first] = nil
	if q.first++; q.first >= len(q.transfers)/2 { // compact
		n := copy(q.transfers, q.transfers[q.first:])
		clear(q.transfers[n:])
		q.transfers, q.first = q.transfers[:n], 0
	}
}

// countPacket counts a packet without a Reply. It requests an Ack if that is wanted, if none is
// outstanding, and after maxPacketsInFlight/2 packets.
func (q *sendQueue) countPacket(h *envelope.Header, wanted bool) {
	q.sent++
	if wanted || q.sent == q.acked+1 || q.sent-q.ackRequested >= maxPacketsInFlight/2 {
		h.Flags = envelope.Synchronous
		q.ackRequested = q.sent
	}
}

// allSent reports whether everything is sent and a later packet or atomic is ordered behind it.
// RDMA reads and messages are not ordered.
func (q *sendQueue) allSent() bool {
	return q.queuedCount() == 0 && q.reads == 0 && q.lastMessage <= q.acked
}

// locallyComplete reports whether all buffers may be reused.
func (q *sendQueue) locallyComplete() bool {
	return q.queuedCount() == 0 && q.replies == 0 && q.rdmaOps == 0
}

// packetsHandled reports whether the target has handled all packets.
func (q *sendQueue) packetsHandled() bool {
	return q.queuedCount() == 0 && q.replies == 0 && q.sent == q.acked
}

// remotelyComplete reports whether all operations are complete at the target.
func (q *sendQueue) remotelyComplete() bool { return q.packetsHandled() && q.rdmaOps == 0 }

// Completion is the level of completion that a flush waits for.
type Completion uint8

const (
	Local  Completion = iota // the buffers may be reused
	Remote                   // complete at the target
)

// isComplete reports whether the operations have reached a level of completion.
func (q *sendQueue) isComplete(level Completion) bool {
	return level == Remote && q.remotelyComplete() || level == Local && q.locallyComplete()
}
