package onesided

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Completion is the level of completion that a flush waits for.
type Completion uint8

const (
	Local  Completion = iota // the buffers may be reused
	Remote                   // complete at the target
)

// FlushRank waits for a level of completion of the operations on target (MPI_Win_flush,
// MPI_Win_flush_local).
func (w *Window) FlushRank(target int, level Completion) error {
	_, err := w.lockEngine()
	if err == nil {
		err = w.checkLocked(target)
		w.eng.Unlock()
	}
	if err == nil && target != comm.ProcNull {
		err = w.flushTargets([]int{target}, level)
	}
	return err
}

// FlushAll is Flush of all ranks (MPI_Win_flush_all, MPI_Win_flush_local_all).
func (w *Window) FlushAll(level Completion) error {
	_, err := w.lockEngine()
	if err == nil {
		err = w.epochs.checkPassive()
		w.eng.Unlock()
	}
	if err == nil {
		err = w.flushTargets(w.allRanks(), level)
	}
	return err
}

// checkLocked returns an error unless a rank is locked.
func (w *Window) checkLocked(target int) error {
	e, err := w.epochOf(target)
	if err == nil && !w.epochs.all && e.locked == 0 {
		err = fmt.Errorf("%w: target not locked", ErrEpoch)
	}
	return err
}

// epochOf returns the epoch of a rank, or of comm.ProcNull.
func (w *Window) epochOf(target int) (*peerEpoch, error) {
	switch {
	case target == comm.ProcNull:
		return &w.epochs.null, nil
	case !w.hasRank(target):
		return nil, fmt.Errorf("%w: %d, want [0, %d)", comm.ErrRank, target, len(w.peers))
	}
	return &w.peers[target].epoch, nil
}

// flushTargets waits for the operations on some ranks. It returns the error of the first one that has
// failed.
func (w *Window) flushTargets(ranks []int, level Completion) error {
	core, err := w.eng.Lock()
	if err != nil {
		return err
	}
	var busy []int
	for _, r := range ranks {
		if !w.peers[r].sendQueue.isComplete(level) {
			busy = append(busy, r)
			if level == Remote {
				w.peers[r].sendQueue.flushes++
				w.requestAck(core, &w.peers[r])
			}
		}
	}
	w.eng.Unlock()
	if len(busy) > 0 {
		left := busy
		err = w.waitUntil("the end of operations", func() bool {
			for len(left) > 0 && w.peers[left[0]].sendQueue.isComplete(level) {
				left = left[1:]
			}
			return len(left) == 0
		}, func(r int) bool { return !w.peers[r].sendQueue.isComplete(level) }, busy...)
	}
	w.eng.Do(func(*protocol.Core) {
		if level == Remote {
			for _, r := range busy {
				w.peers[r].sendQueue.flushes--
			}
		}
		for _, r := range ranks {
			o := &w.peers[r].sendQueue
			if err == nil {
				err = o.err
			}
			o.err = nil
		}
		if err == nil {
			err = w.broken
		}
	})
	return err
}

// transmitQueued transmits all queued packets of the fabric, because the program may now
// compute for long.
func (w *Window) transmitQueued() {
	if fab := w.eng.Fabric(); fab != nil {
		w.eng.Do(func(*protocol.Core) { fab.Flush() })
	}
}

// isComplete reports whether the operations have reached a level of completion.
func (o *sendQueue) isComplete(level Completion) bool {
	return level == Remote && o.remotelyComplete() || level == Local && o.locallyComplete()
}

// requestAck requests an Ack for all packets sent so far, unless one is outstanding.
func (w *Window) requestAck(core *protocol.Core, p *peer) {
	o := &p.sendQueue
	if o.ackRequested < o.sent {
		o.ackRequested = o.sent
		w.sendSignal(core, p, packetAckRequest, 0)
	}
}

// Sync makes progress (MPI_Win_sync). It fails when a rank of the window is lost.
func (w *Window) Sync() error {
	if _, err := w.lockEngine(); err != nil {
		return err
	}
	w.eng.Unlock()
	x := &syncWait{w: w, callName: "Sync", condition: func() bool { return false }, listed: true, pollRound: &w.syncRound, any: true}
	if w.eng.Test(x) {
		return x.err
	}
	return nil
}
