package onesided

import (
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
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

// FlushAll is FlushRank of all ranks (MPI_Win_flush_all, MPI_Win_flush_local_all).
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

// flushTargets waits for the operations on some ranks. It returns the error of the first one that
// has failed.
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
			q := &w.peers[r].sendQueue
			if err == nil {
				err = q.err
			}
			q.err = nil
		}
		if err == nil {
			err = w.broken
		}
	})
	return err
}

// SyncMemory makes progress (MPI_Win_sync). It fails when a rank of the window is lost.
func (w *Window) SyncMemory() error {
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
