package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// winWait is a call that waits for something that ranks of a window have to do.
// It ends, too, when the window loses a rank.
type winWait struct {
	w             *Win
	callName      string // the call
	targets       []int  // of a lock
	condition     func() bool
	suspects      []int          // ranks of the window that it waits for
	isPending     func(int) bool // those of them that it waits for now; nil is all
	any           bool           // one of them is enough
	pollRound     *uint64        // of a call that does not wait: engine.Polls.FirstInRound
	err           error
	checks        int // how often it was looked after
	listed        bool
	probeWhenDone bool // it is looked after although it is over
	done          bool
}

// Ready implements engine.Waitable.
func (x *winWait) Ready() bool {
	if x.done {
		return true
	}
	if x.w.broken != nil {
		x.done, x.err = true, x.w.broken
		return true
	}
	if x.done = x.condition(); !x.done && !x.listed {
		x.listed = true
		x.w.waits = append(x.w.waits, x)
	}
	return x.done
}

// waitUntil waits, in a call, until something is so that suspects have to do, and that each
// does for whom missing is not so any more.
func (w *Win) waitUntil(what string, until func() bool, missing func(int) bool, suspects ...int) error {
	x := &winWait{w: w, callName: what, condition: until, isPending: missing, suspects: suspects}
	return errors.Join(w.eng.Wait(context.Background(), x), x.err)
}

// probeWaits looks after those who wait.
func (w *Win) probeWaits(core *protocol.Core) {
	kept := w.waits[:0]
	for _, x := range w.waits {
		if x.done && !x.probeWhenDone {
			continue
		}
		kept = append(kept, x)
		if x.checks++; x.checks&(x.checks-1) == 0 || x.checks%maxProbeGap == 0 {
			for _, r := range x.suspects {
				w.sendProbe(core, &w.peers[r])
			}
		}
	}
	clear(w.waits[len(kept):])
	w.waits = kept
}

// maxProbeGap is how many times after the last sign of life was asked for the next one
// is, at most.
const maxProbeGap = 16

// sendProbe sends a packet that nobody reads, to see whether it arrives.
func (w *Win) sendProbe(core *protocol.Core, p *winPeer) {
	if p.job != w.eng.Rank() && core.Backlog(p.job) == 0 {
		_ = core.SendActive(p.job, envelope.Header{Tag: packetProbe}, nil) // that it is lost is told otherwise
	}
}

// onRankLost is called when a rank is lost: nothing can be relied on any more.
func (w *Win) onRankLost(core *protocol.Core, p *winPeer) {
	why := core.PeerError(p.job)
	w.failQueued(p, why)
	if w.broken != nil {
		return
	}
	w.broken = why
	for r := range w.peers {
		if q := &w.peers[r]; q != p && r != w.comm.rank {
			w.sendSignal(core, q, packetBroken, uint64(p.rank))
		}
	}
}

// handleBroken is called when another rank says that one is lost.
func (w *Win) handleBroken(from *winPeer, rank uint64) error {
	if rank >= uint64(len(w.peers)) {
		return fmt.Errorf("window %s: it has lost rank %d, which there is not", w.Name(), rank)
	}
	if w.broken == nil {
		w.broken = fmt.Errorf("%w: rank %d, says rank %d", ErrLost, w.peers[rank].job, from.job)
	}
	return nil
}
