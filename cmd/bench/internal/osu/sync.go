package osu

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi"
)

// Sync is the calls between which operations on a window are, and behind which
// they are done.
type Sync uint8

// The ways. In epochs of PSCW and Fence rank 1 takes part, in others it does not.
const (
	Flush      Sync = iota // in one epoch of Lock
	FlushLocal             // the same, until the origin's memory can be used again
	Lock                   // Lock and Unlock
	LockAll                // LockAll and UnlockAll
	PSCW                   // Post, Start, Complete and Wait
	Fence
)

// syncs are the names for -s, and in the output.
var syncs = [...]struct{ name, title string }{
	Flush:      {"flush", "MPI_Win_flush"},
	FlushLocal: {"flush_local", "MPI_Win_flush_local"},
	Lock:       {"lock", "MPI_Win_lock/unlock"},
	LockAll:    {"lock_all", "MPI_Win_lock_all/unlock_all"},
	PSCW:       {"pscw", "MPI_Win_post/start/complete/wait"},
	Fence:      {"fence", "MPI_Win_fence"},
}

// String is the name for -s.
func (s Sync) String() string {
	if int(s) < len(syncs) {
		return syncs[s].name
	}
	return fmt.Sprintf("Sync(%d)", uint8(s))
}

// ParseSync reads a name for -s.
func ParseSync(name string) (Sync, error) {
	for i, s := range syncs {
		if s.name == name {
			return Sync(i), nil
		}
	}
	return 0, fmt.Errorf("%w: synchronization %q: want lock, flush, flush_local, lock_all, pscw or fence", ErrOptions, name)
}

// flushes reports whether all rounds are in one epoch.
func (s Sync) flushes() bool { return s == Flush || s == FlushLocal }

// A step is a call of a round.
type step func(*access) error

func fence(a *access) error      { return a.win.Fence() }
func post(a *access) error       { return a.win.Post(a.other) }
func start(a *access) error      { return a.win.Start(a.other) }
func complete(a *access) error   { return a.win.Complete() }
func wait(a *access) error       { return a.win.Wait() }
func lock(a *access) error       { return a.win.Lock(mpi.LockShared, a.partner) }
func unlock(a *access) error     { return a.win.Unlock(a.partner) }
func lockAll(a *access) error    { return a.win.LockAll() }
func unlockAll(a *access) error  { return a.win.UnlockAll() }
func flush(a *access) error      { return a.win.Flush(a.partner) }
func flushLocal(a *access) error { return a.win.FlushLocal(a.partner) }

// operate is the operations.
func operate(a *access) error {
	for k := range a.places {
		if err := a.t.do(a, k); err != nil {
			return err
		}
	}
	return nil
}

// A script is the steps of a round, and whether there are operations among them.
type script struct {
	steps    []step
	operates bool
}

// scripts are those of rank 0 and rank 1.
func (t *oneSided) scripts(s Sync) [2]script {
	acts := func(steps ...step) script { return script{steps, true} }
	takesPart := func(steps ...step) script { return script{steps, false} }
	switch {
	case s == PSCW && t.both:
		return [2]script{acts(post, start, operate, complete, wait), acts(post, start, operate, complete, wait)}
	case s == PSCW && t.windows:
		return [2]script{acts(start, operate, complete), takesPart(post, wait)}
	case s == PSCW: // there and back
		return [2]script{acts(start, operate, complete, post, wait), acts(post, wait, start, operate, complete)}
	case s == Fence && t.both:
		return [2]script{acts(fence, operate, fence), acts(fence, operate, fence)}
	case s == Fence && t.windows:
		return [2]script{acts(fence, operate, fence), takesPart(fence, fence)}
	case s == Fence:
		return [2]script{acts(fence, operate, fence, fence), acts(fence, fence, operate, fence)}
	case s == Lock:
		return [2]script{acts(lock, operate, unlock)}
	case s == LockAll:
		return [2]script{acts(lockAll, operate, unlockAll)}
	case s == FlushLocal:
		return [2]script{acts(operate, flushLocal)}
	}
	return [2]script{acts(operate, flush)}
}
