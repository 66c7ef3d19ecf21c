package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// LockKind is the kind of a lock.
type LockKind uint8

const (
	LockShared    LockKind = iota + 1 // other origins may hold a shared lock, too (MPI_LOCK_SHARED)
	LockExclusive                     // no other origin may hold a lock (MPI_LOCK_EXCLUSIVE)
)

// Lock opens a passive-target epoch on target (MPI_Win_lock) and returns when this rank holds
// the lock. A rank that loads from or stores to its own window locks it, too. A rank may lock
// several targets one after the other. Locking ProcNull returns at once.
func (w *Win) Lock(kind LockKind, target int, as ...Assert) error {
	if err := w.lockRank(kind, target, combineAsserts(as)); err != nil {
		return w.fail("lock", fmt.Sprintf("of %d", target), err)
	}
	return nil
}

func (w *Win) lockRank(kind LockKind, target int, a Assert) error {
	if _, err := w.lockEngine(); err != nil {
		return err
	}
	e, err := w.lockableEpoch(target)
	if kind != LockShared && kind != LockExclusive {
		err = fmt.Errorf("%w: invalid lock kind %d", ErrEpoch, kind)
	}
	if err == nil {
		w.epochs.locks++ // so that no other goroutine opens another epoch
	}
	w.eng.Unlock()
	if err != nil {
		return err
	}
	if a&NoCheck == 0 && target != ProcNull {
		err = w.acquireLocks(kind, []int{target})
	}
	w.eng.Do(func(*protocol.Core) {
		if err != nil {
			w.epochs.locks--
			return
		}
		e.locked, e.nocheck = kind, a&NoCheck != 0
	})
	return err
}

// lockableEpoch returns the epoch of a rank, or an error if it cannot be locked now.
func (w *Win) lockableEpoch(target int) (*peerEpoch, error) {
	e, err := w.epochOf(target)
	if err == nil {
		err = w.checkLockable(e)
	}
	return e, err
}

// checkLockable returns an error unless a lock can open an epoch now.
func (w *Win) checkLockable(e *peerEpoch) error {
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

// LockAll opens a passive-target epoch on all ranks with shared locks (MPI_Win_lock_all).
func (w *Win) LockAll(as ...Assert) error {
	_, err := w.lockEngine()
	if err == nil {
		e := &w.epochs
		if _, err = w.lockableEpoch(w.comm.base.Rank); err == nil && e.locks > 0 {
			err = fmt.Errorf("%w: %d ranks locked: call Unlock first", ErrEpoch, e.locks)
		}
		if err == nil {
			e.all = true
		}
		w.eng.Unlock()
	}
	nocheck := combineAsserts(as)&NoCheck != 0
	if err == nil && !nocheck {
		err = w.acquireLocks(LockShared, w.allRanks())
		w.eng.Do(func(*protocol.Core) { w.epochs.all = err == nil })
	}
	if err != nil {
		return w.fail("lock-all", "", err)
	}
	w.eng.Do(func(*protocol.Core) {
		for r := range w.peers {
			w.peers[r].epoch.nocheck = nocheck
		}
	})
	return nil
}

// Unlock completes the operations on target and closes the epoch of Lock (MPI_Win_unlock).
func (w *Win) Unlock(target int) error {
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
		if target != ProcNull {
			err = w.unlockRanks([]int{target}, e.locked)
		}
		w.eng.Do(func(*protocol.Core) {
			w.epochs.locks--
			e.locked = 0
		})
	}
	if err != nil {
		return w.fail("unlock", fmt.Sprintf("of %d", target), err)
	}
	return nil
}

// UnlockAll completes all operations and closes the epoch of LockAll (MPI_Win_unlock_all).
func (w *Win) UnlockAll() error {
	_, err := w.lockEngine()
	if err == nil {
		if !w.epochs.all {
			err = fmt.Errorf("%w: call LockAll first", ErrEpoch)
		}
		w.eng.Unlock()
	}
	if err == nil {
		err = w.unlockRanks(w.allRanks(), LockShared)
		w.eng.Do(func(*protocol.Core) { w.epochs.all = false })
	}
	if err != nil {
		return w.fail("unlock-all", "", err)
	}
	return nil
}

// unlockRanks completes the operations on some ranks and releases the locks. RDMA writes are
// ordered before the atomic that follows, so a lock is released right behind them. Other
// operations must be complete first.
func (w *Win) unlockRanks(ranks []int, kind LockKind) error {
	early := make([]bool, len(ranks))
	w.eng.Do(func(core *protocol.Core) {
		for i, r := range ranks {
			if p := &w.peers[r]; p.sendQueue.packetsHandled() && p.sendQueue.allSent() {
				early[i] = true
				w.releaseLock(core, p, kind)
			}
		}
	})
	err := w.flushTargets(ranks, remoteCompletion)
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

// releaseLock releases the lock of a rank.
func (w *Win) releaseLock(core *protocol.Core, p *winPeer, kind LockKind) {
	if p.epoch.nocheck {
		return
	}
	if kind == LockExclusive {
		w.fetchAdd(core, p, sharedTurn, 1, nil)
	}
	w.fetchAdd(core, p, exclusiveTurn, 1, nil)
}
