package mpi

import (
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// outlet is what goes to a rank. Packets that are not replied to are counted, so
// that Ack can say up to which they have been dealt with.
type outlet struct {
	list    []*transfer // that go in packets and have not left, from first on
	first   int
	sent    uint64 // packets without a Reply
	acked   uint64 // of them
	asked   uint64 // of them: Ack will tell when so many are
	message uint64 // of them: the last that announced a message
	replies int    // that have not come
	moves   int    // of the adapter, and messages, that are not done
	reads   int    // of these: what comes here
	atomics int    // of these
	words   int    // of its lock that are being changed
	flushes int    // calls that wait for Ack
	busy    bool   // in push
	err     error  // of an operation, for the next call that waits for it
	tag     int32  // of the last message
}

// maxChunks is how many packets may be under way to a rank.
const maxChunks = 32

func (o *outlet) room() bool { return int(o.sent-o.acked)+o.replies < maxChunks }

func (o *outlet) queued() int { return len(o.list) - o.first }

// pop takes the first of those that are queued.
func (o *outlet) pop() {
	o.list[o.first] = nil
	if o.first++; o.first >= len(o.list)/2 { // so many of them are gone
		n := copy(o.list, o.list[o.first:])
		clear(o.list[n:])
		o.list, o.first = o.list[:n], 0
	}
}

// left reports whether all has left, and what leaves now is behind it. That is not
// so of what the adapter reads, and of messages.
func (o *outlet) left() bool { return o.queued() == 0 && o.reads == 0 && o.message <= o.acked }

// here reports whether all buffers are the program's again.
func (o *outlet) here() bool { return o.queued() == 0 && o.replies == 0 && o.moves == 0 }

// still reports whether there are no packets that have not been dealt with.
func (o *outlet) still() bool { return o.queued() == 0 && o.replies == 0 && o.sent == o.acked }

// done reports whether all is done.
func (o *outlet) done() bool { return o.still() && o.moves == 0 }

// drop ends everything that goes to a lost rank.
func (w *Win) drop(p *winPeer, why error) {
	o := &p.out
	for o.queued() > 0 {
		t := o.list[o.first]
		o.pop()
		t.finish(why)
	}
	for _, t := range w.pending {
		if t.peer == p {
			t.finish(why)
		}
	}
	o.acked, o.asked, o.replies = o.sent, o.sent, 0
}

// queue lets a transfer leave in packets.
func (w *Win) queue(core *protocol.Core, t *transfer) {
	if t.left > 0 {
		w.number++
		t.number = w.number
		w.pending[t.number] = t
		if mem, ok := t.recv.Contiguous(); ok {
			t.mem = mem
		} else {
			t.mem = make([]byte, t.recv.Size())
		}
	}
	t.peer.out.list = append(t.peer.out.list, t)
	w.push(core, t.peer)
}

// push lets packets leave while there is room for them.
func (w *Win) push(core *protocol.Core, p *winPeer) {
	o := &p.out
	if o.busy { // a reply of our own
		return
	}
	o.busy = true
	// An atomic of the adapter may be late, but not behind one that follows.
	for o.queued() > 0 && o.room() && (o.atomics == 0 || !o.list[o.first].what.combines()) {
		if err := w.chunk(core, o.list[o.first]); err != nil {
			w.drop(p, err)
		}
	}
	o.busy = false
	if o.flushes > 0 && o.queued() == 0 {
		w.ask(core, p)
	}
}

// count counts a packet without a Reply. It asks for Ack if that is wanted, if
// there is none under way, and after many packets.
func (o *outlet) count(h *envelope.Header, wanted bool) {
	o.sent++
	if wanted || o.sent == o.acked+1 || o.sent-o.asked >= maxChunks/2 {
		h.Flags = envelope.Synchronous
		o.asked = o.sent
	}
}

// replied handles a Reply.
func (w *Win) replied(core *protocol.Core, p *winPeer, h *envelope.Header, payload []byte) error {
	t := w.pending[h.ID]
	if t == nil || t.peer != p || len(payload) == 0 || len(payload) > t.left || h.Length > uint64(len(t.mem)-len(payload)) {
		return errReply
	}
	copy(t.mem[h.Length:], payload)
	p.out.replies--
	if t.left -= len(payload); t.left == 0 {
		t.finish(nil)
	}
	w.push(core, p)
	return nil
}

// acked handles an Ack.
func (w *Win) acked(core *protocol.Core, p *winPeer, n uint64) error {
	o := &p.out
	if n < o.acked || n > o.sent {
		return errReply
	}
	o.acked = n
	w.push(core, p)
	return nil
}
