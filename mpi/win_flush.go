package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// completionLevel is the level of completion that a flush waits for.
type completionLevel uint8

const (
	localCompletion  completionLevel = iota // the buffers may be reused
	remoteCompletion                        // complete at the target
)

// Flush waits until the operations on target are complete at the target (MPI_Win_flush). It
// needs an epoch of Lock or LockAll.
func (w *Win) Flush(target int) error { return w.flushRank("flush", target, remoteCompletion) }

// FlushAll is Flush of all ranks (MPI_Win_flush_all).
func (w *Win) FlushAll() error { return w.flushAllRanks("flush-all", remoteCompletion) }

// FlushLocal waits until the buffers of the operations on target may be reused
// (MPI_Win_flush_local).
func (w *Win) FlushLocal(target int) error {
	return w.flushRank("flush-local", target, localCompletion)
}

// FlushLocalAll is FlushLocal of all ranks (MPI_Win_flush_local_all).
func (w *Win) FlushLocalAll() error { return w.flushAllRanks("flush-local-all", localCompletion) }

// flushRank flushes the operations on one rank.
func (w *Win) flushRank(op string, target int, level completionLevel) error {
	_, err := w.lockEngine()
	if err == nil {
		err = w.checkLocked(target)
		w.eng.Unlock()
	}
	if err == nil && target != ProcNull {
		err = w.flushTargets([]int{target}, level)
	}
	if err != nil {
		return w.fail(op, fmt.Sprintf("to %d", target), err)
	}
	return nil
}

// flushAllRanks flushes the operations on all ranks.
func (w *Win) flushAllRanks(op string, level completionLevel) error {
	_, err := w.lockEngine()
	if err == nil {
		err = w.epochs.checkPassive()
		w.eng.Unlock()
	}
	if err == nil {
		err = w.flushTargets(w.allRanks(), level)
	}
	if err != nil {
		return w.fail(op, "", err)
	}
	return nil
}

// checkLocked returns an error unless a rank is locked.
func (w *Win) checkLocked(target int) error {
	e, err := w.epochOf(target)
	if err == nil && !w.epochs.all && e.locked == 0 {
		err = fmt.Errorf("%w: target not locked", ErrEpoch)
	}
	return err
}

// epochOf returns the epoch of a rank, or of ProcNull.
func (w *Win) epochOf(target int) (*peerEpoch, error) {
	switch {
	case target == ProcNull:
		return &w.epochs.null, nil
	case !w.hasRank(target):
		return nil, fmt.Errorf("%w: %d, want [0, %d)", ErrRank, target, len(w.peers))
	}
	return &w.peers[target].epoch, nil
}

// flushTargets waits for the operations on some ranks. It returns the error of the first one that has
// failed.
func (w *Win) flushTargets(ranks []int, level completionLevel) error {
	core, err := w.eng.Lock()
	if err != nil {
		return err
	}
	var busy []int
	for _, r := range ranks {
		if !w.peers[r].sendQueue.isComplete(level) {
			busy = append(busy, r)
			if level == remoteCompletion {
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
		if level == remoteCompletion {
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
func (w *Win) transmitQueued() {
	if fab := w.eng.Fabric(); fab != nil {
		w.eng.Do(func(*protocol.Core) { fab.Flush() })
	}
}

// isComplete reports whether the operations have reached a level of completion.
func (o *sendQueue) isComplete(level completionLevel) bool {
	return level == remoteCompletion && o.remotelyComplete() || level == localCompletion && o.locallyComplete()
}

// requestAck requests an Ack for all packets sent so far, unless one is outstanding.
func (w *Win) requestAck(core *protocol.Core, p *winPeer) {
	o := &p.sendQueue
	if o.ackRequested < o.sent {
		o.ackRequested = o.sent
		w.sendSignal(core, p, packetAckRequest, 0)
	}
}

// Sync synchronizes the private and the public copy of the window (MPI_Win_sync). In Go, memory
// that other ranks write must be read with package sync/atomic until a synchronization call has
// returned; Sync makes progress, so that a loop that polls memory ends. It fails when a rank of
// the window is lost.
func (w *Win) Sync() error {
	if _, err := w.lockEngine(); err != nil {
		return w.fail("sync", "", err)
	}
	w.eng.Unlock()
	x := &winWait{w: w, callName: "Sync", condition: func() bool { return false }, listed: true, pollRound: &w.syncRound, any: true}
	if w.eng.Test(x) {
		return w.fail("sync", "", x.err)
	}
	return nil
}
