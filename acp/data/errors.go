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
	ErrNoHeap       = errors.New("rank has no heap; call Open at all ranks with the same Options.Anchor")
	ErrNoMemory     = errors.New("heap exhausted: no free block is long enough")
	ErrNotAllocated = errors.New("address not allocated, or already freed")
	ErrKind         = errors.New("wrong kind of structure at the address")
	ErrDestroyed    = errors.New("structure destroyed")
	ErrType         = errors.New("element type mismatch")
	ErrFlat         = errors.New("type cannot be stored as plain memory")
	ErrIndex        = errors.New("index out of range")
	ErrEmpty        = errors.New("container is empty")
	ErrElement      = errors.New("address of no element of the list")
	ErrDamaged      = errors.New("structure damaged")
	ErrHolderLost   = errors.New("holder of the lock is lost")
	ErrHeld         = errors.New("lock held for too long")
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
	return fmt.Sprintf("lock at %v: held by rank %d for at least %v: %v", e.At, e.Holder, e.For.Round(time.Millisecond), e.Err)
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
