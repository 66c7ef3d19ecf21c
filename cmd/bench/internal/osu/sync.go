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

// usesFlush reports whether all rounds are in one epoch.
func (s Sync) usesFlush() bool { return s == Flush || s == FlushLocal }

// A step is a call of a round.
type step func(*windowAccess) error

func stepFence(a *windowAccess) error      { return a.win.Fence() }
func stepPost(a *windowAccess) error       { return a.win.Post(a.peerGroup) }
func stepStart(a *windowAccess) error      { return a.win.Start(a.peerGroup) }
func stepComplete(a *windowAccess) error   { return a.win.Complete() }
func stepWait(a *windowAccess) error       { return a.win.Wait() }
func stepLock(a *windowAccess) error       { return a.win.Lock(mpi.LockShared, a.partner) }
func stepUnlock(a *windowAccess) error     { return a.win.Unlock(a.partner) }
func stepLockAll(a *windowAccess) error    { return a.win.LockAll() }
func stepUnlockAll(a *windowAccess) error  { return a.win.UnlockAll() }
func stepFlush(a *windowAccess) error      { return a.win.Flush(a.partner) }
func stepFlushLocal(a *windowAccess) error { return a.win.FlushLocal(a.partner) }

// stepOperate is the operations.
func stepOperate(a *windowAccess) error {
	for k := range a.slots {
		if err := a.t.invoke(a, k); err != nil {
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

// roundScripts are those of rank 0 and rank 1.
func (t *oneSided) roundScripts(s Sync) [2]script {
	acts := func(steps ...step) script { return script{steps, true} }
	takesPart := func(steps ...step) script { return script{steps, false} }
	switch {
	case s == PSCW && t.bidirectional:
		return [2]script{acts(stepPost, stepStart, stepOperate, stepComplete, stepWait), acts(stepPost, stepStart, stepOperate, stepComplete, stepWait)}
	case s == PSCW && t.windowed:
		return [2]script{acts(stepStart, stepOperate, stepComplete), takesPart(stepPost, stepWait)}
	case s == PSCW: // there and back
		return [2]script{acts(stepStart, stepOperate, stepComplete, stepPost, stepWait), acts(stepPost, stepWait, stepStart, stepOperate, stepComplete)}
	case s == Fence && t.bidirectional:
		return [2]script{acts(stepFence, stepOperate, stepFence), acts(stepFence, stepOperate, stepFence)}
	case s == Fence && t.windowed:
		return [2]script{acts(stepFence, stepOperate, stepFence), takesPart(stepFence, stepFence)}
	case s == Fence:
		return [2]script{acts(stepFence, stepOperate, stepFence, stepFence), acts(stepFence, stepFence, stepOperate, stepFence)}
	case s == Lock:
		return [2]script{acts(stepLock, stepOperate, stepUnlock)}
	case s == LockAll:
		return [2]script{acts(stepLockAll, stepOperate, stepUnlockAll)}
	case s == FlushLocal:
		return [2]script{acts(stepOperate, stepFlushLocal)}
	}
	return [2]script{acts(stepOperate, stepFlush)}
}
