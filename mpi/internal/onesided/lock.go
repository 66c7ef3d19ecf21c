package onesided

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// LockRank acquires the lock of a rank, which opens an access epoch on it (MPI_Win_lock). nocheck
// asserts that no rank holds a conflicting lock.
func (w *Window) LockRank(kind LockKind, target int, nocheck bool) error {
	if _, err := w.lockEngine(); err != nil {
		return err
	}
	e, err := w.lockableEpoch(target)
	if kind != Shared && kind != Exclusive {
		err = fmt.Errorf("%w: invalid lock kind %d", ErrEpoch, kind)
	}
	if err == nil {
		w.epochs.locks++ // so that no other goroutine opens another epoch
	}
	w.eng.Unlock()
	if err != nil {
		return err
	}
	if !nocheck && target != comm.ProcNull {
		err = w.acquireLocks(kind, []int{target})
	}
	w.eng.Do(func(*protocol.Core) {
		if err != nil {
			w.epochs.locks--
			return
		}
		e.locked, e.nocheck = kind, nocheck
	})
	return err
}

// LockAll opens a passive-target epoch on all ranks with shared locks (MPI_Win_lock_all).
func (w *Window) LockAll(nocheck bool) error {
	_, err := w.lockEngine()
	if err == nil {
		e := &w.epochs
		if _, err = w.lockableEpoch(w.comm.Rank); err == nil && e.locks > 0 {
			err = fmt.Errorf("%w: %d ranks locked: call Unlock first", ErrEpoch, e.locks)
		}
		if err == nil {
			e.all = true
		}
		w.eng.Unlock()
	}
	if err == nil && !nocheck {
		err = w.acquireLocks(Shared, w.allRanks())
		w.eng.Do(func(*protocol.Core) { w.epochs.all = err == nil })
	}
	if err != nil {
		return err
	}
	w.eng.Do(func(*protocol.Core) {
		for r := range w.peers {
			w.peers[r].epoch.nocheck = nocheck
		}
	})
	return nil
}

// lockableEpoch returns the epoch of a rank, or an error if it cannot be locked now.
func (w *Window) lockableEpoch(target int) (*peerEpoch, error) {
	e, err := w.epochOf(target)
	if err == nil {
		err = w.checkLockable(e)
	}
	return e, err
}

// checkLockable returns an error unless a lock can open an epoch now.
func (w *Window) checkLockable(e *peerEpoch) error {
	switch {
	case w.broken != nil:
		return w.broken
	case w.epochs.all:
		return fmt.Errorf("%w: all ranks locked", ErrEpoch)
	case w.epochs.started != nil:
		return fmt.Errorf("%w: call Complete first", ErrEpoch)
	case e.locked != 0:
		return fmt.Errorf("%w: target already locked", ErrEpoch)
	}
	return w.epochs.closeFence()
}

// UnlockRank completes the operations on target and closes the epoch of Lock (MPI_Win_unlock).
func (w *Window) UnlockRank(target int) error {
	_, err := w.lockEngine()
	if err == nil {
		err = w.checkLocked(target)
		if err == nil && w.epochs.all {
			err = fmt.Errorf("%w: all ranks locked: call UnlockAll", ErrEpoch)
		}
		w.eng.Unlock()
	}
	if err == nil {
		e, _ := w.epochOf(target)
		if target != comm.ProcNull {
			err = w.unlockRanks([]int{target}, e.locked)
		}
		w.eng.Do(func(*protocol.Core) {
			w.epochs.locks--
			e.locked = 0
		})
	}
	return err
}

// UnlockAll completes all operations and closes the epoch of LockAll (MPI_Win_unlock_all).
func (w *Window) UnlockAll() error {
	_, err := w.lockEngine()
	if err == nil {
		if !w.epochs.all {
			err = fmt.Errorf("%w: call LockAll first", ErrEpoch)
		}
		w.eng.Unlock()
	}
	if err == nil {
		err = w.unlockRanks(w.allRanks(), Shared)
		w.eng.Do(func(*protocol.Core) { w.epochs.all = false })
	}
	return err
}

// unlockRanks completes the operations on some ranks and releases the locks. RDMA writes are
// ordered before the atomic that follows, so a lock is released right behind them. Other
// operations must be complete first.
func (w *Window) unlockRanks(ranks []int, kind LockKind) error {
	early := make([]bool, len(ranks))
	w.eng.Do(func(core *protocol.Core) {
		for i, r := range ranks {
			if p := &w.peers[r]; p.sendQueue.packetsHandled() && p.sendQueue.allSent() {
				early[i] = true
				w.releaseLock(core, p, kind)
			}
		}
	})
	err := w.flushTargets(ranks, Remote)
	defer w.transmitQueued()
	w.eng.Do(func(core *protocol.Core) {
		for i, r := range ranks {
			if !early[i] {
				w.releaseLock(core, &w.peers[r], kind)
			}
		}
	})
	return err
}

// waitUnlocks waits until all releases of locks have completed.
func (w *Window) waitUnlocks() error {
	return w.waitUntil("Free", func() bool {
		for r := range w.peers {
			if w.peers[r].sendQueue.lockUpdates > 0 {
				return false
			}
		}
		return true
	}, func(r int) bool { return w.peers[r].sendQueue.lockUpdates > 0 }, w.allRanks()...)
}
