package onesided

import (
	"errors"
	"fmt"
)

// ErrEpoch is wrapped by the error of a call that the open epochs do not permit
// (MPI_ERR_RMA_SYNC).
var ErrEpoch = errors.New("mpi: wrong RMA synchronization")

// epochs are the open epochs of a rank.
type epochs struct {
	fence   bool  // Fence has opened an access epoch
	used    bool  // operations were started in it
	all     bool  // LockAll
	locks   int   // number of locked ranks
	started []int // ranks given to Start; nil without an epoch
	posted  []int // ranks given to Post; nil without an epoch

	null peerEpoch // epoch of comm.ProcNull
}

// peerEpoch is the epoch of one rank.
type peerEpoch struct {
	locked  LockKind // 0 if not locked
	nocheck bool     // locked with NoCheck, so that no lock is held
	started bool
	posts   int // Post signals that have arrived
	ends    int // Complete signals that have arrived
}

// LockKind is the kind of a lock.
type LockKind uint8

const (
	Shared    LockKind = iota + 1 // other origins may hold a shared lock, too
	Exclusive                     // no other origin may hold a lock
)

// checkOperation returns an error unless an access epoch permits operations on a rank.
func (e *epochs) checkOperation(p *peerEpoch) error {
	switch {
	case e.all || p.locked != 0 || p.started:
		return nil
	case e.started != nil:
		return fmt.Errorf("%w: target not given to Start", ErrEpoch)
	case e.locks > 0:
		return fmt.Errorf("%w: target not locked", ErrEpoch)
	case !e.fence:
		return fmt.Errorf("%w: no access epoch: call Fence, Start or Lock first", ErrEpoch)
	}
	e.used = true
	return nil
}

// checkClosed returns an error if an epoch is open that the program must close.
func (e *epochs) checkClosed() error {
	switch {
	case e.all:
		return fmt.Errorf("%w: call UnlockAll first", ErrEpoch)
	case e.locks > 0:
		return fmt.Errorf("%w: %d ranks locked: call Unlock first", ErrEpoch, e.locks)
	case e.started != nil:
		return fmt.Errorf("%w: call Complete first", ErrEpoch)
	case e.posted != nil:
		return fmt.Errorf("%w: call Wait first", ErrEpoch)
	}
	return nil
}

// closeFence ends the epoch of Fence, because another is opened. It fails if operations were
// started in it.
func (e *epochs) closeFence() error {
	if e.used {
		return fmt.Errorf("%w: operations since the last Fence: call Fence first", ErrEpoch)
	}
	e.fence = false
	return nil
}

// checkPassive returns an error unless an epoch of Lock or LockAll is open.
func (e *epochs) checkPassive() error {
	if !e.all && e.locks == 0 {
		return fmt.Errorf("%w: call Lock or LockAll first", ErrEpoch)
	}
	return nil
}
