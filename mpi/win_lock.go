package mpi

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// LockKind says who else may have a lock.
type LockKind uint8

const (
	LockShared    LockKind = iota + 1 // others who share it (MPI_LOCK_SHARED)
	LockExclusive                     // nobody (MPI_LOCK_EXCLUSIVE)
)

// Lock begins an epoch of operations on a rank, which takes no part in it
// (MPI_Win_lock). It returns when this rank has the lock. A rank that stores to or
// loads from its own window locks it too. Several ranks can be locked, one after
// the other. ProcNull can be locked as well: nothing is waited for.
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
		err = fmt.Errorf("%w: lock of kind %d", ErrEpoch, kind)
	}
	if err == nil {
		w.epochs.locks++ // nobody else begins another epoch
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

// lockableEpoch returns the epoch of a rank that can be locked now.
func (w *Win) lockableEpoch(target int) (*peerEpoch, error) {
	e, err := w.epochOf(target)
	if err == nil {
		err = w.checkLockable(e)
	}
	return e, err
}

// checkLockable is nil if a lock can begin an epoch now.
func (w *Win) checkLockable(e *peerEpoch) error {
	switch {
	case w.broken != nil:
		return w.broken
	case w.epochs.all:
		return fmt.Errorf("%w: all ranks are locked", ErrEpoch)
	case w.epochs.started != nil:
		return fmt.Errorf("%w: call Complete before", ErrEpoch)
	case e.locked != 0:
		return fmt.Errorf("%w: the rank is locked", ErrEpoch)
	}
	return w.epochs.closeFence()
}

// LockAll begins an epoch of operations on all ranks, with a shared lock of each
// (MPI_Win_lock_all).
func (w *Win) LockAll(as ...Assert) error {
	_, err := w.lockEngine()
	if err == nil {
		e := &w.epochs
		if _, err = w.lockableEpoch(w.comm.rank); err == nil && e.locks > 0 {
			err = fmt.Errorf("%w: call Unlock before, of %d ranks", ErrEpoch, e.locks)
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

// Unlock ends the epoch of Lock, when the operations on the rank are done
// (MPI_Win_unlock).
func (w *Win) Unlock(target int) error {
	_, err := w.lockEngine()
	if err == nil {
		err = w.checkLocked(target)
		if err == nil && w.epochs.all {
			err = fmt.Errorf("%w: call UnlockAll", ErrEpoch)
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

// UnlockAll ends the epoch of LockAll, when all operations are done
// (MPI_Win_unlock_all).
func (w *Win) UnlockAll() error {
	_, err := w.lockEngine()
	if err == nil {
		if !w.epochs.all {
			err = fmt.Errorf("%w: call LockAll before", ErrEpoch)
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

// unlockRanks waits for operations and gives locks back. What the adapter writes arrives
// before what follows, so a lock may follow it at once. All else has to be done.
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
	err := w.flush(ranks, remoteCompletion)
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

// releaseLock gives a lock back.
func (w *Win) releaseLock(core *protocol.Core, p *winPeer, kind LockKind) {
	if p.epoch.nocheck {
		return
	}
	if kind == LockExclusive {
		w.fetchAdd(core, p, sharedTurn, 1, nil)
	}
	w.fetchAdd(core, p, exclusiveTurn, 1, nil)
}
