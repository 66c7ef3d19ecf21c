package onesided

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// syncWait is a wait of a synchronization call for other ranks of a window. It also ends when a
// rank of the window is lost.
type syncWait struct {
	w             *Window
	callName      string // for reports
	targets       []int  // of a lock, for reports
	condition     func() bool
	suspects      []int          // ranks of the window to probe
	isPending     func(int) bool // reports whether a suspect is waited for now; nil is always
	any           bool           // one of the suspects is enough
	pollRound     *uint64        // of a call that does not wait, for engine.PollStats.FirstInRound
	err           error
	checks        int  // number of calls of probeWaits
	listed        bool // in Win.waits
	probeWhenDone bool // send probes although done
	done          bool
}

// Ready implements engine.Waitable.
func (x *syncWait) Ready() bool {
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

// waitUntil waits until condition holds. suspects are the ranks that it depends on, of which
// missing selects those that are still pending. The call must not hold the engine's lock.
func (w *Window) waitUntil(what string, until func() bool, missing func(int) bool, suspects ...int) error {
	x := &syncWait{w: w, callName: what, condition: until, isPending: missing, suspects: suspects}
	return errors.Join(w.eng.Wait(context.Background(), x), x.err)
}

// probeWaits sends liveness probes to the ranks that calls wait for, with growing intervals.
func (w *Window) probeWaits(core *protocol.Core) {
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

// maxProbeGap is the maximum number of checks between two probes of a wait.
const maxProbeGap = 16

// sendProbe sends a liveness probe to a rank.
func (w *Window) sendProbe(core *protocol.Core, p *peer) {
	if p.job != w.eng.Rank() && core.Backlog(p.job) == 0 {
		_ = core.SendActive(p.job, envelope.Header{Tag: deadlock.PacketProbe}, nil) // onRankLost reports a lost rank
	}
}

// onRankLost breaks the window after the loss of a rank and notifies the other ranks.
func (w *Window) onRankLost(core *protocol.Core, p *peer) {
	cause := core.PeerError(p.job)
	w.failQueued(p, cause)
	if w.broken != nil {
		return
	}
	w.broken = cause
	for r := range w.peers {
		if q := &w.peers[r]; q != p && r != w.comm.Rank {
			w.sendSignal(core, q, packetBroken, uint64(p.rank))
		}
	}
}

// handleBroken handles the report of a rank that has lost another.
func (w *Window) handleBroken(from *peer, rank uint64) error {
	if rank >= uint64(len(w.peers)) {
		return fmt.Errorf("window %s: report of lost rank %d, which is out of range", w.comm.Name(), rank)
	}
	if w.broken == nil {
		w.broken = fmt.Errorf("%w: rank %d, reported by rank %d", protocol.ErrLost, w.peers[rank].job, from.job)
	}
	return nil
}

// DescribeWait implements deadlock.Describer.
func (x *syncWait) DescribeWait() deadlock.Call {
	d := deadlock.Call{What: x.callName, Comm: x.w.comm.Name(), Any: x.any}
	switch len(x.targets) {
	case 0:
	case 1:
		d.What += fmt.Sprintf("(target %s)", x.w.comm.DescribeRank(int32(x.w.comm.WorldRank(x.targets[0]))))
	default:
		d.What += fmt.Sprintf("(%d ranks)", len(x.targets))
	}
	suspects := x.suspects
	if suspects == nil && x.any { // any other rank
		suspects = slices.DeleteFunc(x.w.allRanks(), func(r int) bool { return r == x.w.comm.Rank })
	}
	for _, r := range suspects {
		if x.isPending == nil || x.isPending(r) {
			d.For = append(d.For, x.w.comm.WorldRank(r))
		}
	}
	return d
}

// WaitKey implements deadlock.Keyed.
func (x *syncWait) WaitKey() any { return x }

// OnPoll implements engine.PollObserver.
func (x *syncWait) OnPoll(p *engine.PollStats) {
	if x.pollRound != nil && p.FirstInRound(x.pollRound) {
		p.Add(x.pollRound, deadlock.NewPoll(x.DescribeWait(), func() bool { return x.w.broken != nil || x.condition() }))
	}
}

var _ deadlock.Describer = &syncWait{}

var _ engine.PollObserver = &syncWait{}
