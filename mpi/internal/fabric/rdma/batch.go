package rdma

import (
	"encoding/binary"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// A program that sends many short messages in a row does not wait for any of
// them: all but the first go together, in one packet with a header each. They
// leave when there is no room for more, when the program waits for something
// or looks, and after batchTime at the latest.

const (
	batchMax  = 1 << 10               // a longer packet goes alone
	batchTime = 50 * time.Microsecond // for a program that sends and then computes
)

// batch is what waits to leave together, in a send buffer.
type batch struct {
	buffer int

	n int // bytes; 0: nothing, and no buffer
}

// padded is the room that a packet takes among others.
func padded(n int) int { return (n + 7) &^ 7 }

// pack puts a packet to those that leave together, and reports whether it did.
func (f *Fabric) pack(l *link, h *envelope.Header, payload []byte) bool {
	n := padded(envelope.Size + len(payload))
	if l.recent == 0 || n > batchMax || h.Kind == envelope.Hello || h.Kind == envelope.Bye {
		return false
	}
	if l.batch.n+n > f.sends.size && !f.flush(l) {
		return false
	}
	if l.batch.n == 0 {
		s := f.sends.take()
		if s < 0 {
			return false
		}
		l.batch.buffer = s
		if f.batched = append(f.batched, l); len(f.batched) == 1 {
			f.timer.Reset(batchTime)
		}
	}
	h.Credits = 0
	put(f.sends.buf(l.batch.buffer)[l.batch.n:], h, payload, false)
	l.batch.n += n
	f.stats.coalesced++
	return true
}

// flush sends what leaves together, and reports whether it has left.
func (f *Fabric) flush(l *link) bool {
	if l.batch.n == 0 || l.down {
		return true
	}
	if l.credits == 0 || l.room() == 0 {
		l.waiting = true
		return false
	}
	b := f.sends.buf(l.batch.buffer)
	binary.LittleEndian.PutUint16(b[36:], l.owed) // Header.Credits of the first
	f.sge[0] = f.sends.sge(l.batch.buffer, l.batch.n)
	f.wr[0] = verbs.SendWR{Opcode: verbs.WRSend, Flags: f.sends.flags(), SGList: f.sge[:], WRID: l.wrid(wrBuffer, l.batch.buffer)}
	l.batch = batch{}
	if f.post(l) {
		l.owed = 0
		l.credits--
		f.stats.packets++
	}
	return true
}

// Flush implements fabric.Fabric.
func (f *Fabric) Flush() {
	for _, l := range f.recents {
		l.recent = 0
		f.postList(l)
	}
	f.recents = f.recents[:0]
	if len(f.batched) == 0 {
		return
	}
	kept := f.batched[:0]
	for _, l := range f.batched {
		if !f.flush(l) {
			kept = append(kept, l)
		}
	}
	f.batched = kept
}

// late is the timer's: the program does something else.
func (f *Fabric) late() { f.host.Do(func(*protocol.Core) { f.Flush() }) }

// resume goes on with what waits for room on the way to a rank.
func (f *Fabric) resume(l *link) {
	if l.credits > 0 && f.flush(l) {
		l.waiting = false
		f.host.Core().Resume(l.rank)
	}
}
