package rdma

import (
	"encoding/binary"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Consecutive short packets are coalesced: all except the first are sent in one SEND, each with its header. The batch is sent
// when it is full, when the program waits or polls, and after batchTime at the latest.

const (
	maxBatchedPacket = 1 << 10               // in bytes; longer packets are not coalesced
	batchTime        = 50 * time.Microsecond // maximum delay while the program computes
)

// A batch is a send buffer with packets to be sent together.
type batch struct {
	buffer int

	n int // length in bytes; 0 is no batch and no buffer
}

// paddedSize returns the length of a packet in a batch.
func paddedSize(n int) int { return (n + 7) &^ 7 }

// appendToBatch appends a packet to the batch, and reports whether it did.
func (f *Fabric) appendToBatch(l *link, h *envelope.Header, payload []byte) bool {
	n := paddedSize(envelope.Size + len(payload))
	if l.recent == 0 || f.o.Flow == FlowCredit || n > maxBatchedPacket || h.Kind == envelope.Hello || h.Kind == envelope.Bye {
		return false
	}
	if l.batch.n+n > f.sendBuffers.size && !f.flushBatch(l) {
		return false
	}
	if l.batch.n == 0 {
		s := f.sendBuffers.alloc()
		if s < 0 {
			return false
		}
		l.batch.buffer = s
		if f.batchedLinks = append(f.batchedLinks, l); len(f.batchedLinks) == 1 {
			f.timer.Reset(batchTime)
		}
	}
	h.Credits = 0
	marshalPacket(f.sendBuffers.buffer(l.batch.buffer)[l.batch.n:], h, payload, false)
	l.batch.n += n
	f.stats.coalesced++
	return true
}

// flushBatch sends the batch, and reports whether it is sent.
func (f *Fabric) flushBatch(l *link) bool {
	if l.batch.n == 0 || l.failed {
		return true
	}
	if l.credits == 0 || l.freeSendSlots() == 0 {
		f.waitForRoom(l)
		return false
	}
	b := f.sendBuffers.buffer(l.batch.buffer)
	binary.LittleEndian.PutUint16(b[36:], l.unreturnedCredits) // Header.Credits of the first
	f.sge[0] = f.sendBuffers.sge(l.batch.buffer, l.batch.n)
	f.wr[0] = verbs.SendWR{Opcode: verbs.WRSend, Flags: f.sendBuffers.sendFlags(), SGList: f.sge[:], WRID: l.nextWRID(wrBuffer, l.batch.buffer)}
	l.batch = batch{}
	if f.postWR(l) {
		l.unreturnedCredits = 0
		l.credits--
		f.stats.packets++
	}
	return true
}

// Flush implements fabric.Fabric.
func (f *Fabric) Flush() { f.flush(!f.host.Idle()) }

// flush sends what was delayed. inCall is set in a call of the program.
func (f *Fabric) flush(inCall bool) {
	if len(f.heldLinks) > 0 {
		f.flushStreams(inCall)
	}
	for _, l := range f.recentLinks {
		l.recent = 0
		f.flushPostList(l)
	}
	f.recentLinks = f.recentLinks[:0]
	if len(f.batchedLinks) == 0 {
		return
	}
	kept := f.batchedLinks[:0]
	for _, l := range f.batchedLinks {
		if !f.flushBatch(l) {
			kept = append(kept, l)
		}
	}
	f.batchedLinks = kept
}

// onTimer flushes while the program computes. It looks for the completions that let bytes
// of streams leave.
func (f *Fabric) onTimer() {
	f.host.Do(func(*protocol.Core) {
		if f.closed {
			return
		}
		if f.o.Flow == FlowNIC && len(f.heldLinks) > 0 && !f.host.Leading() {
			f.pollCompletions()
		}
		f.flush(false)
	})
}

// resumeLink continues with the packets that wait for room or credits.
func (f *Fabric) resumeLink(l *link) {
	if l.credits > 0 && f.flushBatch(l) {
		l.coreWaiting = false
		f.host.Core().Resume(l.rank)
	}
}
