package mpi

import "fmt"

// Assert tells a call of synchronisation what it need not do (MPI 4.1, 12.5.5).
type Assert uint8

const (
	NoCheck   Assert = 1 << iota // Lock: nobody else has one; Start and Post: the other has been called before, and says so too
	NoStore                      // this rank has not stored to its memory: nothing is made of it
	NoPut                        // nobody will put anything in this rank's memory: nothing is made of it
	NoPrecede                    // Fence: no rank has begun anything since the last one
	NoSucceed                    // Fence: no rank begins anything until the next one
)

func combineAsserts(as []Assert) (all Assert) {
	for _, a := range as {
		all |= a
	}
	return all
}

// epochs say what a rank may do now.
type epochs struct {
	fence   bool  // Fence has been called, and so operations are allowed
	used    bool  // there were some
	all     bool  // LockAll
	locks   int   // Locks
	started []int // by Start; nil if it has not been called
	posted  []int // by Post; nil if it has not been called

	null peerEpoch // of ProcNull
}

// peerEpoch is what of it concerns a rank.
type peerEpoch struct {
	locked  LockKind // 0 if it is not
	nocheck bool     // and no lock was taken
	started bool
	posts   int // signals that have come
	ends    int // Complete
}

// checkOperation is nil if operations on a rank are allowed.
func (e *epochs) checkOperation(p *peerEpoch) error {
	switch {
	case e.all || p.locked != 0 || p.started:
		return nil
	case e.started != nil:
		return fmt.Errorf("%w: Start was not called for the rank", ErrEpoch)
	case e.locks > 0:
		return fmt.Errorf("%w: the rank is not locked", ErrEpoch)
	case !e.fence:
		return fmt.Errorf("%w: call Fence, Start or Lock before", ErrEpoch)
	}
	e.used = true
	return nil
}

// checkClosed is nil if no epoch is open that somebody has to close.
func (e *epochs) checkClosed() error {
	switch {
	case e.all:
		return fmt.Errorf("%w: call UnlockAll before", ErrEpoch)
	case e.locks > 0:
		return fmt.Errorf("%w: call Unlock before, of %d ranks", ErrEpoch, e.locks)
	case e.started != nil:
		return fmt.Errorf("%w: call Complete before", ErrEpoch)
	case e.posted != nil:
		return fmt.Errorf("%w: call Wait before", ErrEpoch)
	}
	return nil
}

// closeFence is nil if no operations belong to a Fence. Then its epoch is over, for
// another is opened.
func (e *epochs) closeFence() error {
	if e.used {
		return fmt.Errorf("%w: call Fence before, there have been operations since the last", ErrEpoch)
	}
	e.fence = false
	return nil
}

// checkPassive is nil if operations can be waited for in an epoch of Lock or LockAll.
func (e *epochs) checkPassive() error {
	if !e.all && e.locks == 0 {
		return fmt.Errorf("%w: call Lock or LockAll before", ErrEpoch)
	}
	return nil
}
