package onesided

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

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
