package mpi

import "github.com/softrnic/softrnic/mpi/internal/onesided"

// Assert is an assertion of the program that permits a synchronization call to do less (MPI
// 4.1, 12.5.5).
type Assert uint8

const (
	NoCheck   Assert = 1 << iota // Lock: no rank holds a conflicting lock; Start and Post: the matching call has been made, with NoCheck, too
	NoStore                      // this rank has not stored to its memory; ignored
	NoPut                        // no rank will put data into this rank's memory; ignored
	NoPrecede                    // Fence: no rank has started operations since the last one
	NoSucceed                    // Fence: no rank starts operations until the next one
)

// hasAssert reports whether the assertions contain a.
func hasAssert(as []Assert, a Assert) bool {
	for _, x := range as {
		if x&a != 0 {
			return true
		}
	}
	return false
}

// Fence completes the operations of all ranks since the last Fence and opens an access epoch
// (MPI_Win_fence). All ranks call it; it returns after all have called it. Stores of each rank
// before it are visible to the others after it.
func (w *Win) Fence(as ...Assert) error {
	return w.fail("fence", w.asWindow().FenceEpoch(hasAssert(as, NoPrecede), hasAssert(as, NoSucceed)))
}

// Post opens an exposure epoch for the ranks of a group (MPI_Win_post). It does not wait; Wait
// closes the epoch.
func (w *Win) Post(g *Group, as ...Assert) error {
	ranks, err := w.membersOf(g)
	if err == nil {
		err = w.asWindow().PostEpoch(ranks, hasAssert(as, NoCheck))
	}
	return w.fail("post", err)
}

// Start opens an access epoch on the ranks of a group and waits for the Post of each
// (MPI_Win_start). Complete closes it.
func (w *Win) Start(g *Group, as ...Assert) error {
	ranks, err := w.membersOf(g)
	if err == nil {
		err = w.asWindow().StartEpoch(ranks, hasAssert(as, NoCheck))
	}
	return w.fail("start", err)
}

// membersOf returns the ranks in the window of the ranks of a group.
func (w *Win) membersOf(g *Group) ([]int, error) {
	if w.isNull() {
		return nil, errNullWin
	}
	return w.comm.membersOf(g)
}

// Complete closes the epoch of Start (MPI_Win_complete). It returns when the buffers of the
// operations may be reused, and does not wait for Wait at the targets.
func (w *Win) Complete() error { return w.fail("complete", w.asWindow().CompleteEpoch()) }

// Wait closes the epoch of Post (MPI_Win_wait). It returns when all ranks of the group have
// called Complete and their operations are complete.
func (w *Win) Wait() error { return w.fail("wait", w.asWindow().WaitEpoch()) }

// Test reports whether the epoch of Post can be closed, and closes it (MPI_Win_test). It does
// not wait.
func (w *Win) Test() (bool, error) {
	closed, err := w.asWindow().TestEpoch()
	return closed, w.fail("test", err)
}

// LockKind is the kind of a lock.
type LockKind uint8

const (
	LockShared    = LockKind(onesided.Shared)    // other origins may hold a shared lock, too (MPI_LOCK_SHARED)
	LockExclusive = LockKind(onesided.Exclusive) // no other origin may hold a lock (MPI_LOCK_EXCLUSIVE)
)

// Lock opens a passive-target epoch on target (MPI_Win_lock) and returns when this rank holds
// the lock. A rank that loads from or stores to its own window locks it, too. A rank may lock
// several targets one after the other. Locking ProcNull returns at once.
func (w *Win) Lock(kind LockKind, target int, as ...Assert) error {
	return w.failTarget("lock", "of", target, w.asWindow().LockRank(onesided.LockKind(kind), target, hasAssert(as, NoCheck)))
}

// LockAll opens a passive-target epoch on all ranks with shared locks (MPI_Win_lock_all).
func (w *Win) LockAll(as ...Assert) error {
	return w.fail("lock-all", w.asWindow().LockAll(hasAssert(as, NoCheck)))
}

// Unlock completes the operations on target and closes the epoch of Lock (MPI_Win_unlock).
func (w *Win) Unlock(target int) error {
	return w.failTarget("unlock", "of", target, w.asWindow().UnlockRank(target))
}

// UnlockAll completes all operations and closes the epoch of LockAll (MPI_Win_unlock_all).
func (w *Win) UnlockAll() error { return w.fail("unlock-all", w.asWindow().UnlockAll()) }

// Flush waits until the operations on target are complete at the target (MPI_Win_flush). It
// needs an epoch of Lock or LockAll.
func (w *Win) Flush(target int) error {
	return w.failTarget("flush", "to", target, w.asWindow().FlushRank(target, onesided.Remote))
}

// FlushAll is Flush of all ranks (MPI_Win_flush_all).
func (w *Win) FlushAll() error {
	return w.fail("flush-all", w.asWindow().FlushAll(onesided.Remote))
}

// FlushLocal waits until the buffers of the operations on target may be reused
// (MPI_Win_flush_local).
func (w *Win) FlushLocal(target int) error {
	return w.failTarget("flush-local", "to", target, w.asWindow().FlushRank(target, onesided.Local))
}

// FlushLocalAll is FlushLocal of all ranks (MPI_Win_flush_local_all).
func (w *Win) FlushLocalAll() error {
	return w.fail("flush-local-all", w.asWindow().FlushAll(onesided.Local))
}

// Sync synchronizes the private and the public copy of the window (MPI_Win_sync). In Go, memory
// that other ranks write must be read with package sync/atomic until a synchronization call has
// returned; Sync makes progress, so that a loop that polls memory ends. It fails when a rank of
// the window is lost.
func (w *Win) Sync() error { return w.fail("sync", w.asWindow().SyncMemory()) }
