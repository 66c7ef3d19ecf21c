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
	ErrNoHeap       = errors.New("acp/data: rank has no heap; call Open at all ranks with the same Options.Anchor")
	ErrNoMemory     = errors.New("acp/data: heap exhausted: no free block is long enough")
	ErrNotAllocated = errors.New("acp/data: address not allocated, or already freed")
	ErrKind         = errors.New("acp/data: wrong kind of structure at the address")
	ErrDestroyed    = errors.New("acp/data: structure destroyed")
	ErrType         = errors.New("acp/data: element type mismatch")
	ErrFlat         = errors.New("acp/data: type cannot be stored as plain memory")
	ErrIndex        = errors.New("acp/data: index out of range")
	ErrEmpty        = errors.New("acp/data: container is empty")
	ErrElement      = errors.New("acp/data: address of no element of the list")
	ErrDamaged      = errors.New("acp/data: structure damaged")
	ErrHolderLost   = errors.New("acp/data: holder of the lock lost")
	ErrHeld         = errors.New("acp/data: lock held for too long")
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
	return fmt.Sprintf("acp/data: lock at %v: held by rank %d for at least %v: %v", e.At, e.Holder, e.For.Round(time.Millisecond), e.Err)
}

// Unwrap returns the cause.
func (e *LockError) Unwrap() error { return e.Err }

// newError wraps err in an *acp.Error of the call op with the arguments args. It returns nil if err is
// nil.
func (s *Space) newError(op, args string, err error) error {
	if err == nil {
		return nil
	}
	return &acp.Error{Rank: s.Process().Rank(), Op: op, Args: args, Err: err}
}
