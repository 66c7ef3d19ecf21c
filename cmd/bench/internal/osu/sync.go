package osu

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/spelling"
	"github.com/softrnic/softrnic/mpi"
)

// A Sync is the synchronization of operations on a window: the calls around them that complete
// them.
type Sync uint8

// The synchronizations. Rank 1 participates in those of PSCW and Fence only.
const (
	Flush      Sync = iota // Flush in a single epoch of Lock
	FlushLocal             // FlushLocal: local completion, in a single epoch of Lock
	Lock                   // Lock and Unlock
	LockAll                // LockAll and UnlockAll
	PSCW                   // Post, Start, Complete and Wait
	Fence
)

// syncs has the names for -s and in the output.
var syncs = [...]struct{ name, title string }{
	Flush:      {"flush", "MPI_Win_flush"},
	FlushLocal: {"flush_local", "MPI_Win_flush_local"},
	Lock:       {"lock", "MPI_Win_lock/unlock"},
	LockAll:    {"lock_all", "MPI_Win_lock_all/unlock_all"},
	PSCW:       {"pscw", "MPI_Win_post/start/complete/wait"},
	Fence:      {"fence", "MPI_Win_fence"},
}

// String returns the name for -s.
func (s Sync) String() string {
	if int(s) < len(syncs) {
		return syncs[s].name
	}
	return fmt.Sprintf("Sync(%d)", uint8(s))
}

// ParseSync parses a name for -s.
func ParseSync(name string) (Sync, error) {
	var names []string
	for i, s := range syncs {
		if s.name == name {
			return Sync(i), nil
		}
		names = append(names, s.name)
	}
	return 0, fmt.Errorf("%w: synchronization %q: want lock, flush, flush_local, lock_all, pscw or fence%s", ErrOptions, name, spelling.Hint(name, names...))
}

// usesFlush reports whether all rounds are in one epoch.
func (s Sync) usesFlush() bool { return s == Flush || s == FlushLocal }

// A step is one call of a round.
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

// stepOperate starts the operations.
func stepOperate(a *windowAccess) error {
	for k := range a.slots {
		if err := a.t.invoke(a, k); err != nil {
			return err
		}
	}
	return nil
}

// A script is the steps of a round. operates is true if they contain operations.
type script struct {
	steps    []step
	operates bool
}

// roundScripts returns the scripts of rank 0 and rank 1.
func (t *oneSided) roundScripts(s Sync) [2]script {
	acts := func(steps ...step) script { return script{steps, true} }
	passive := func(steps ...step) script { return script{steps, false} }
	switch {
	case s == PSCW && t.bidirectional:
		return [2]script{acts(stepPost, stepStart, stepOperate, stepComplete, stepWait), acts(stepPost, stepStart, stepOperate, stepComplete, stepWait)}
	case s == PSCW && t.windowed:
		return [2]script{acts(stepStart, stepOperate, stepComplete), passive(stepPost, stepWait)}
	case s == PSCW: // the ranks take turns
		return [2]script{acts(stepStart, stepOperate, stepComplete, stepPost, stepWait), acts(stepPost, stepWait, stepStart, stepOperate, stepComplete)}
	case s == Fence && t.bidirectional:
		return [2]script{acts(stepFence, stepOperate, stepFence), acts(stepFence, stepOperate, stepFence)}
	case s == Fence && t.windowed:
		return [2]script{acts(stepFence, stepOperate, stepFence), passive(stepFence, stepFence)}
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

// A Creation is the way in which windows are created.
type Creation uint8

// The ways of creation.
const (
	Allocate Creation = iota // windows that allocate their memory
	Create                   // windows of existing memory
	Dynamic                  // windows to which memory is attached
)

// creations has the names for -w and in the output.
var creations = [...]struct{ name, title string }{
	Allocate: {"allocate", "MPI_Win_allocate"},
	Create:   {"create", "MPI_Win_create"},
	Dynamic:  {"dynamic", "MPI_Win_create_dynamic"},
}

// String returns the name for -w.
func (c Creation) String() string {
	if int(c) < len(creations) {
		return creations[c].name
	}
	return fmt.Sprintf("Creation(%d)", uint8(c))
}

// ParseCreation parses a name for -w.
func ParseCreation(name string) (Creation, error) {
	var names []string
	for i, c := range creations {
		if c.name == name {
			return Creation(i), nil
		}
		names = append(names, c.name)
	}
	return 0, fmt.Errorf("%w: window creation %q: want create, allocate or dynamic%s", ErrOptions, name, spelling.Hint(name, names...))
}

// newWindow creates a window with size bytes of local memory. It is collective. peerOffset is
// the base of displacements at the peer.
func (c Creation) newWindow(comm *mpi.Comm, size int) (win *mpi.Win, mine []byte, peerOffset int, err error) {
	if c == Allocate {
		win, mine, err = mpi.WinAllocate[byte](comm, size)
		return win, mine, 0, err
	}
	mine = alignedBytes(size)
	if c == Create {
		win, err = mpi.WinCreate(comm, mine)
		return win, mine, 0, err
	}
	if win, err = mpi.WinCreateDynamic(comm); err != nil {
		return nil, nil, 0, err
	}
	at, err := mpi.WinAttach(win, mine)
	if err != nil {
		return nil, nil, 0, err
	}
	all := make([]int, comm.Size())
	err = comm.Allgather(mpi.Of([]int{at}), mpi.Of(all))
	return win, mine, all[1-comm.Rank()], err
}
