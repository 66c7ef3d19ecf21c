package detector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Before a rank ends, the others must know the mismatches that it has found, and it must know
// those that its own messages cause. So it flushes: it sends a packet to each rank that it has
// sent packets to, and waits for the replies. Packets are handled in order, and a rank withholds
// its reply until all ranks have confirmed the mismatches that it has announced. When all replies
// have arrived,
//
//   - all packets of this rank have been handled and compared;
//   - all ranks know the mismatches that resulted.
//
// When all ranks have flushed, every rank knows every mismatch.

// flushes are the flushes of this rank and of others. The engine's lock guards it.
type flushes struct {
	*rank
	awaited        map[int]bool // ranks whose reply to our flush is missing
	departing      bool         // the flush is a PacketDepart
	unconfirmed    map[int]int  // by rank: announced mismatches without a confirmation
	pendingReplies []flushReply

	departed    error       // error of a rank that does not join the last fence, or nil
	onDeparture func(error) // called with it, or nil
}

// A flushReply is a withheld reply to the flush of a rank.
type flushReply struct {
	rank     int
	departed error // nil unless the rank departs
}

// A departure is the reason of a rank that leaves the job before the others.
type departure struct {
	text     string
	mismatch bool
}

// Error implements error.
func (d *departure) Error() string { return "left the job: " + d.text }

// Unwrap returns ErrMismatch if the reason is a mismatch, else nil.
func (d *departure) Unwrap() error {
	if d.mismatch {
		return deadlock.ErrMismatch
	}
	return nil
}

// A flushWait is the condition that all replies to a flush have arrived.
type flushWait struct {
	f    *flushes
	comm string // name of the world
}

// Ready implements engine.Waitable.
func (w flushWait) Ready() bool { return len(w.f.awaited) == 0 && len(w.f.unconfirmed) == 0 }

// DescribeWait implements deadlock.Describer.
func (w flushWait) DescribeWait() deadlock.Call {
	d := deadlock.Call{What: "finalize", Comm: w.comm}
	for rank := range w.f.awaited {
		d.For = append(d.For, rank)
	}
	slices.Sort(d.For)
	return d
}

// Flush sends a PacketFlush to all ranks that packets have been sent to and waits for the replies
// of those that are not lost. It ends when ctx ends. comm is the name of the world, for reports.
func (f *flushes) Flush(ctx context.Context, comm string) error {
	return f.flushPackets(ctx, comm, nil)
}

// noTransfers is the condition that no RDMA of this rank's requests is in flight: ranks that
// know of the departure may reuse their memory.
type noTransfers struct{ core *protocol.Core }

// Ready implements engine.Waitable.
func (n noTransfers) Ready() bool {
	_, _, inFlight := n.core.Pending()
	return inFlight == 0
}

// OnDeparture has notify called with the error, an ErrLost, when another rank departs, at once if one
// has. notify is called with the engine's lock held.
func (f *flushes) OnDeparture(notify func(error)) {
	f.engine.Do(func(*protocol.Core) {
		if f.onDeparture = notify; f.departed != nil {
			notify(f.departed)
		}
	})
}

// flushPackets is Flush. With a reason it sends a PacketDepart, also to ranks that packets have come
// from, and to all ranks if the reason is a mismatch: ranks that find the same mismatch announce
// it to this rank, and would wait for a confirmation until the fabric gives up.
func (f *flushes) flushPackets(ctx context.Context, comm string, cause error) error {
	h, text := envelope.Header{Tag: deadlock.PacketFlush}, ""
	if cause != nil {
		h.Tag, text = deadlock.PacketDepart, cause.Error()
		if errors.Is(cause, deadlock.ErrMismatch) {
			h.Flags = envelope.Synchronous
		}
	}
	f.engine.Do(func(core *protocol.Core) {
		f.awaited, f.departing = map[int]bool{}, cause != nil
		for rank := range f.engine.Size() {
			sent, received := core.Exchanged(rank)
			if rank != f.engine.Rank() && core.PeerError(rank) == nil && (sent || cause != nil && received || h.Flags != 0) {
				f.awaited[rank] = true
				f.SendPacket(core, rank, h, []byte(text[:min(len(text), f.engine.Fabric().Limits(rank).Eager)]))
			}
		}
	})
	return f.engine.Wait(ctx, flushWait{f, comm})
}

// handleFlushReply handles PacketFlushed. A rank that replies to a departure treats this rank as
// lost, and is lost to this rank as well.
func (f *flushes) handleFlushReply(core *protocol.Core, from int) {
	delete(f.awaited, from)
	if f.departing {
		core.FailPeer(from, engine.ErrClosed)
	}
}

// handleFlush handles deadlock.PacketFlush, and PacketDepart with its reason.
func (f *flushes) handleFlush(core *protocol.Core, from int, departed error) {
	f.pendingReplies = append(f.pendingReplies, flushReply{from, departed})
	if departed != nil {
		f.departed = fmt.Errorf("%w: rank %d: %w", protocol.ErrLost, from, departed)
		if f.onDeparture != nil {
			f.onDeparture(f.departed)
		}
	}
	f.replyToFlushes(core)
}

// replyToFlushes sends the withheld replies unless a mismatch is unconfirmed. A rank that
// departs is lost as soon as its reply has left. Its connection is kept for the reply: the rank
// has completed all of its transfers.
func (f *flushes) replyToFlushes(core *protocol.Core) {
	if len(f.unconfirmed) > 0 {
		return
	}
	replies := f.pendingReplies
	f.pendingReplies = nil
	for _, r := range replies {
		f.SendPacket(core, r.rank, envelope.Header{Tag: deadlock.PacketFlushed}, nil)
		if r.departed != nil {
			core.FailPeerOnceSent(r.rank, r.departed)
		}
	}
}

// SendMismatch sends a mismatch of a communicator to a rank and expects its confirmation. The
// caller holds the engine's lock.
func (f *flushes) SendMismatch(core *protocol.Core, rank int, comm uint32, payload []byte) {
	if core.PeerError(rank) == nil {
		f.unconfirmed[rank]++
		f.SendPacket(core, rank, envelope.Header{Tag: deadlock.PacketMismatch, ID: uint64(comm)}, payload)
	}
}

// handleConfirm handles PacketConfirm.
func (f *flushes) handleConfirm(core *protocol.Core, from int) {
	if f.unconfirmed[from]--; f.unconfirmed[from] <= 0 {
		f.dropUnconfirmed(core, from)
	}
}

// dropRank stops waiting for a lost rank.
func (f *flushes) dropRank(core *protocol.Core, rank int) {
	delete(f.awaited, rank)
	f.dropUnconfirmed(core, rank)
}

// dropUnconfirmed stops waiting for confirmations of a rank, which has sent them or is lost.
func (f *flushes) dropUnconfirmed(core *protocol.Core, rank int) {
	delete(f.unconfirmed, rank)
	f.replyToFlushes(core)
}

// hasAnnouncedMismatch reports whether a rank has departed because of a mismatch, of which it has
// notified all others.
func hasAnnouncedMismatch(err error) bool {
	d := (*departure)(nil)
	return errors.As(err, &d) && d.mismatch
}

// parseDeparture returns the reason in a PacketDepart.
func parseDeparture(h *envelope.Header, payload []byte) error {
	return &departure{text: strings.ToValidUTF8(string(payload), "?"), mismatch: h.Flags&envelope.Synchronous != 0}
}
