package data

import (
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/acp"
)

// The errors of package data, in addition to those of package acp. Calls return an [*acp.Error] that wraps
// one of them: use errors.Is.
var (
	ErrNoHeap       = errors.New("the rank has no heap there: all ranks call data.Open, with the same place of the anchor")
	ErrNoMemory     = errors.New("the heap has no free block that is long enough")
	ErrNotAllocated = errors.New("no allocated block begins at this address: it was never allocated, or has been freed")
	ErrKind         = errors.New("there is no such structure at this address")
	ErrDestroyed    = errors.New("the structure was destroyed")
	ErrType         = errors.New("values of another type")
	ErrFlat         = errors.New("values of this type cannot be kept as they are in memory")
	ErrIndex        = errors.New("no such element")
	ErrEmpty        = errors.New("it is empty")
	ErrElement      = errors.New("it is no element of this list, or not any more")
	ErrDamaged      = errors.New("what is in memory cannot be")
	ErrHolderLost   = errors.New("a rank that is lost holds the lock")
	ErrHeld         = errors.New("the lock is held for too long")
	ErrOptions      = acp.ErrOptions
)

// LockError is the error of a method that waited for a lock that was not released. It wraps ErrHolderLost or
// ErrHeld.
type LockError struct {
	At     acp.GA        // address of the lock word
	Holder int           // rank of the holder
	For    time.Duration // time for which it was observed to hold the lock
	Err    error
}

// Error returns the holder, the lock and the cause.
func (e *LockError) Error() string {
	return fmt.Sprintf("rank %d holds the lock at %v since %v or more: %v", e.Holder, e.At, e.For.Round(time.Millisecond), e.Err)
}

// Unwrap returns the cause.
func (e *LockError) Unwrap() error { return e.Err }

// newError wraps err in an *acp.Error of the call op on the target named by what. It returns nil if err is
// nil.
func (s *Space) newError(op, what string, err error) error {
	if err == nil {
		return nil
	}
	return &acp.Error{Rank: s.Process().Rank(), Op: op, What: what, Err: err}
}
