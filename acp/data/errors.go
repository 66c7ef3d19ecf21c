package data

import (
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/acp"
)

// What can be wrong, besides the errors of package acp. Errors of calls are an [*acp.Error] with
// more words around these: use errors.Is.
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

// LockError says who has not given a lock back: the error of who waits for it, with ErrHolderLost or ErrHeld in
// it.
type LockError struct {
	At     acp.GA        // the word of the lock
	Holder int           // rank
	For    time.Duration // that it was seen to hold it
	Err    error
}

// Error says who holds what, and why this does not end.
func (e *LockError) Error() string {
	return fmt.Sprintf("rank %d holds the lock at %v since %v or more: %v", e.Holder, e.At, e.For.Round(time.Millisecond), e.Err)
}

// Unwrap returns what is wrong.
func (e *LockError) Unwrap() error { return e.Err }

// newError makes an error of a call.
func (s *Space) newError(op, what string, err error) error {
	if err == nil {
		return nil
	}
	return &acp.Error{Rank: s.Process().Rank(), Op: op, What: what, Err: err}
}
