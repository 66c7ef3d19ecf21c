package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/hang"
	"github.com/softrnic/softrnic/mpi/protocol"
)

// A rank must not end before the others know what it has found, nor before it knows what
// comes of what it has sent. So it flushes: it sends each rank that it has sent packets to
// one more, and waits for the answers. Packets are handled in order, and the
// answer is held back until all ranks have confirmed the disagreements that the answering
// rank has told them. When all answers are there,
//
//   - all that this rank has sent has been handled, and compared;
//   - whatever disagreement has come of that is known to all ranks.
//
// When all ranks have flushed every rank knows of every disagreement.

// flushState is the state of flushes. The engine's lock guards it.
type flushState struct {
	awaited        map[int]bool // ranks that have not answered ours
	departing      bool         // it is our last word
	unconfirmed    map[int]int  // disagreements told to a rank that it has not confirmed
	pendingReplies []flushReply

	departed   error                   // why a rank does not come to the last fence
	breakFence context.CancelCauseFunc // ends the wait there, or nil
}

// flushReply is the answer to the flush of a rank.
type flushReply struct {
	rank     int
	departed error // nil unless the rank departs
}

// departure is the reason of a rank that ends before the others.
type departure struct {
	text     string
	mismatch bool
}

// Error implements error.
func (d *departure) Error() string { return "it has left the job: " + d.text }

// Unwrap returns ErrMismatch if the ranks of a collective call did not agree.
func (d *departure) Unwrap() error {
	if d.mismatch {
		return ErrMismatch
	}
	return nil
}

// flushWait is the wait for the answers to a flush.
type flushWait struct{ l *lookout }

// Ready implements engine.Waitable.
func (f flushWait) Ready() bool {
	core := f.l.w.eng.Core()
	for rank := range f.l.awaited {
		if core.LostBecause(rank) != nil {
			delete(f.l.awaited, rank)
		}
	}
	return len(f.l.awaited) == 0 && len(f.l.unconfirmed) == 0
}

// describe implements describer.
func (f flushWait) describe() hang.Call {
	d := hang.Call{What: "finalize", Comm: f.l.w.Name()}
	for rank := range f.l.awaited {
		d.For = append(d.For, rank)
	}
	slices.Sort(d.For)
	return d
}

// flush sends a packetFlush to all ranks that packets have been sent to, or a packetDepart
// with a reason to those that have sent any, too, and waits for the answers of those that
// are not lost. A rank that departs because of a disagreement tells all: others that have
// found it as well are about to tell this one, and would wait long for a rank that is gone.
func (l *lookout) flush(ctx context.Context, why error) error {
	h, text := envelope.Header{Tag: packetFlush}, ""
	if why != nil {
		h.Tag, text = packetDepart, why.Error()
		if errors.Is(why, ErrMismatch) {
			h.Flags = envelope.Synchronous
		}
	}
	l.w.eng.Do(func(core *protocol.Core) {
		l.awaited, l.departing = map[int]bool{}, why != nil
		for rank := range l.w.eng.Size() {
			sent, received := core.Exchanged(rank)
			if rank != l.w.eng.Rank() && core.LostBecause(rank) == nil && (sent || why != nil && received || h.Flags != 0) {
				l.awaited[rank] = true
				l.tell(core, rank, h, []byte(text[:min(len(text), l.w.eng.Fabric().Limits(rank).Eager)]))
			}
		}
	})
	return l.w.eng.Wait(ctx, flushWait{l})
}

// handleFlushReply is called when a rank has answered. To one that has heard that we depart we
// are lost, and it to us.
func (l *lookout) handleFlushReply(core *protocol.Core, from int) {
	delete(l.awaited, from)
	if l.departing {
		core.Lost(from, ErrFinalized)
	}
}

// handleFlush is called when a rank flushes, with the reason if it departs.
func (l *lookout) handleFlush(core *protocol.Core, from int, departed error) {
	l.sign(core, from) // it waits for us
	l.pendingReplies = append(l.pendingReplies, flushReply{from, departed})
	if departed != nil {
		l.departed = fmt.Errorf("%w: rank %d: %w", ErrLost, from, departed)
		if l.breakFence != nil {
			l.breakFence(l.departed)
		}
	}
	l.replyToFlushes(core)
}

// replyToFlushes answers the flushes of others unless a disagreement is unconfirmed. A rank
// that departs is lost as soon as its answer has left. The fabric is not told: the
// connection has to carry the answer, and the rank has ended all of its transfers.
func (l *lookout) replyToFlushes(core *protocol.Core) {
	if len(l.unconfirmed) > 0 {
		return
	}
	held := l.pendingReplies
	l.pendingReplies = nil
	for _, a := range held {
		l.tell(core, a.rank, envelope.Header{Tag: packetFlushed}, nil)
		if a.departed != nil {
			core.LostOnceSent(a.rank, a.departed)
		}
	}
}

// tellDisagreement sends a disagreement to a rank, which confirms it.
func (l *lookout) tellDisagreement(core *protocol.Core, rank int, comm uint32, payload []byte) {
	if core.LostBecause(rank) == nil {
		l.unconfirmed[rank]++
		l.tell(core, rank, envelope.Header{Tag: packetDisagree, ID: uint64(comm)}, payload)
	}
}

// handleConfirm is called when a rank has confirmed a disagreement.
func (l *lookout) handleConfirm(core *protocol.Core, from int) {
	if l.unconfirmed[from]--; l.unconfirmed[from] <= 0 {
		l.dropUnconfirmed(core, from)
	}
}

// dropUnconfirmed drops the disagreements that a rank has not confirmed.
func (l *lookout) dropUnconfirmed(core *protocol.Core, rank int) {
	delete(l.unconfirmed, rank)
	l.replyToFlushes(core)
}

// parseDeparture returns the reason in a packetDepart.
func parseDeparture(h *envelope.Header, payload []byte) error {
	return &departure{text: strings.ToValidUTF8(string(payload), "?"), mismatch: h.Flags&envelope.Synchronous != 0}
}
