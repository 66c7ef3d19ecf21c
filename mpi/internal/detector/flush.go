package detector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/coll"
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

// flushState is the state of the flushes of this rank and of others. The engine's lock guards it.
type flushState struct {
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
		return coll.ErrMismatch
	}
	return nil
}

// A flushWait is the condition that all replies to a flush have arrived.
type flushWait struct {
	d    *Detector
	comm string // name of the world
}

// Ready implements engine.Waitable.
func (f flushWait) Ready() bool {
	core := f.d.engine.Core()
	for rank := range f.d.awaited {
		if core.PeerError(rank) != nil {
			delete(f.d.awaited, rank)
		}
	}
	return len(f.d.awaited) == 0 && len(f.d.unconfirmed) == 0
}

// DescribeWait implements deadlock.Describer.
func (f flushWait) DescribeWait() deadlock.Call {
	d := deadlock.Call{What: "finalize", Comm: f.comm}
	for rank := range f.d.awaited {
		d.For = append(d.For, rank)
	}
	slices.Sort(d.For)
	return d
}

// Flush sends a PacketFlush to all ranks that packets have been sent to and waits for the replies
// of those that are not lost. It ends when ctx ends. comm is the name of the world, for reports.
func (d *Detector) Flush(ctx context.Context, comm string) error {
	return d.flushPackets(ctx, comm, nil)
}

// AnnounceDeparture ends a rank that leaves the job before the others: it stops the detector, fails all
// requests and sends the reason to the other ranks. It returns when they have replied and all
// ranks know the mismatches that this rank has found, after timeout at the latest.
func (d *Detector) AnnounceDeparture(cause error, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	d.Stop()
	d.engine.FailAll()
	if d.engine.Wait(ctx, noTransfers{d.engine.Core()}) == nil {
		_ = d.flushPackets(ctx, "", cause)
	}
}

// noTransfers is the condition that no RDMA of this rank's requests is in flight: ranks that
// know of the departure may reuse their memory.
type noTransfers struct{ core *protocol.Core }

// Ready implements engine.Waitable.
func (n noTransfers) Ready() bool {
	_, _, inFlight := n.core.Pending()
	return inFlight == 0
}

// OnDeparture has f called with the error, an ErrLost, when another rank departs, at once if one
// has. f is called with the engine's lock held.
func (d *Detector) OnDeparture(f func(error)) {
	d.engine.Do(func(*protocol.Core) {
		if d.onDeparture = f; d.departed != nil {
			f(d.departed)
		}
	})
}

// flushPackets is Flush. With a reason it sends a PacketDepart, also to ranks that packets have come
// from, and to all ranks if the reason is a mismatch: ranks that find the same mismatch announce
// it to this rank, and would wait for a confirmation until the fabric gives up.
func (d *Detector) flushPackets(ctx context.Context, comm string, cause error) error {
	h, text := envelope.Header{Tag: deadlock.PacketFlush}, ""
	if cause != nil {
		h.Tag, text = deadlock.PacketDepart, cause.Error()
		if errors.Is(cause, coll.ErrMismatch) {
			h.Flags = envelope.Synchronous
		}
	}
	d.engine.Do(func(core *protocol.Core) {
		d.awaited, d.departing = map[int]bool{}, cause != nil
		for rank := range d.engine.Size() {
			sent, received := core.Exchanged(rank)
			if rank != d.engine.Rank() && core.PeerError(rank) == nil && (sent || cause != nil && received || h.Flags != 0) {
				d.awaited[rank] = true
				d.SendPacket(core, rank, h, []byte(text[:min(len(text), d.engine.Fabric().Limits(rank).Eager)]))
			}
		}
	})
	return d.engine.Wait(ctx, flushWait{d, comm})
}

// handleFlushReply handles PacketFlushed. A rank that replies to a departure treats this rank as
// lost, and is lost to this rank as well.
func (d *Detector) handleFlushReply(core *protocol.Core, from int) {
	delete(d.awaited, from)
	if d.departing {
		core.FailPeer(from, engine.ErrClosed)
	}
}

// handleFlush handles deadlock.PacketFlush, and PacketDepart with its reason.
func (d *Detector) handleFlush(core *protocol.Core, from int, departed error) {
	d.handleProbe(core, from) // it waits for this rank
	d.pendingReplies = append(d.pendingReplies, flushReply{from, departed})
	if departed != nil {
		d.departed = fmt.Errorf("%w: rank %d: %w", protocol.ErrLost, from, departed)
		if d.onDeparture != nil {
			d.onDeparture(d.departed)
		}
	}
	d.replyToFlushes(core)
}

// replyToFlushes sends the withheld replies unless a mismatch is unconfirmed. A rank that
// departs is lost as soon as its reply has left. Its connection is kept for the reply: the rank
// has completed all of its transfers.
func (d *Detector) replyToFlushes(core *protocol.Core) {
	if len(d.unconfirmed) > 0 {
		return
	}
	replies := d.pendingReplies
	d.pendingReplies = nil
	for _, r := range replies {
		d.SendPacket(core, r.rank, envelope.Header{Tag: deadlock.PacketFlushed}, nil)
		if r.departed != nil {
			core.FailPeerOnceSent(r.rank, r.departed)
		}
	}
}

// SendMismatch sends a mismatch of a communicator to a rank and expects its confirmation. The
// caller holds the engine's lock.
func (d *Detector) SendMismatch(core *protocol.Core, rank int, comm uint32, payload []byte) {
	if core.PeerError(rank) == nil {
		d.unconfirmed[rank]++
		d.SendPacket(core, rank, envelope.Header{Tag: deadlock.PacketMismatch, ID: uint64(comm)}, payload)
	}
}

// handleConfirm handles PacketConfirm.
func (d *Detector) handleConfirm(core *protocol.Core, from int) {
	if d.unconfirmed[from]--; d.unconfirmed[from] <= 0 {
		d.dropUnconfirmed(core, from)
	}
}

// dropUnconfirmed stops waiting for confirmations of a rank, which has sent them or is lost.
func (d *Detector) dropUnconfirmed(core *protocol.Core, rank int) {
	delete(d.unconfirmed, rank)
	d.replyToFlushes(core)
}

// parseDeparture returns the reason in a PacketDepart.
func parseDeparture(h *envelope.Header, payload []byte) error {
	return &departure{text: strings.ToValidUTF8(string(payload), "?"), mismatch: h.Flags&envelope.Synchronous != 0}
}
