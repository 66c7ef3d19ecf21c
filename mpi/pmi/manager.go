package pmi

import (
	"context"
	"errors"
	"fmt"
)

// Manager is the process manager of a job, as seen by one rank. All methods may be
// called from any goroutine; those that ask the manager wait for one another.
type Manager interface {
	// Rank is who this is, from 0.
	Rank() int

	// Size is how many ranks the job has.
	Size() int

	// JobID is the same on all ranks, and another for every job.
	JobID() string

	// Put makes a value known under a key, to others after the next Fence. A key
	// has letters, digits and any of ._:/- and is at most MaxKey long; it is put
	// once in a job.
	Put(key, value string) error

	// Fence returns when all ranks have come to it: what they have put before can
	// be got. A rank calls it from one goroutine at a time. When ctx ends before,
	// the fence goes on: the next call of Fence waits for the same one, and other
	// calls wait until it is over.
	Fence(ctx context.Context) error

	// Get returns the value of a key, or ErrNotFound.
	Get(ctx context.Context, key string) (string, error)

	// Node is the host that a rank runs on, counted from 0. All ranks of one may
	// share memory. It panics if there is no such rank.
	Node(rank int) int

	// Abort ends the whole job, also while other calls wait. The caller's process
	// should end with the code itself: it may come to that before the manager.
	Abort(code int, why string) error

	// Finalize says that this rank needs the manager no more. A process that ends
	// without it has failed in the manager's eyes.
	Finalize() error
}

// Limits of what is put, whatever the manager's.
const (
	MaxKey   = 40       // characters
	MaxValue = 16 << 20 // bytes
)

// Errors of a Manager. They come with more words: use errors.Is.
var (
	// ErrNotFound says that nobody has put the key before the last Fence.
	ErrNotFound = errors.New("nobody has put it")

	// ErrGone says that the manager has closed the connection, or answers no more.
	ErrGone = errors.New("the process manager is gone")

	// ErrFinalized says that Finalize was called before.
	ErrFinalized = errors.New("the job is finalized")
)

// ProtocolError says that a manager's answer is not what it has to be. Nothing can
// be asked any more.
type ProtocolError struct {
	Request string
	Answer  string
	Why     string
}

// Error says what was asked, what was answered and what is wrong with it.
func (e *ProtocolError) Error() string {
	return fmt.Sprintf("the process manager answers %q with %q: %s", e.Request, e.Answer, e.Why)
}

// AbortError says that a rank of a job of goroutines has called Abort.
type AbortError struct {
	Rank, Code int
	Why        string
}

// Error says who has aborted the job and why.
func (e *AbortError) Error() string {
	return fmt.Sprintf("rank %d has aborted the job with code %d: %s", e.Rank, e.Code, e.Why)
}

// KeyError says that a key or value cannot be put.
type KeyError struct{ Key, Why string }

// Error names the key and what is wrong.
func (e *KeyError) Error() string { return fmt.Sprintf("key %.60q: %s", e.Key, e.Why) }

// checkKey refuses keys that not every manager takes.
func checkKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return &KeyError{key, fmt.Sprintf("want 1 to %d characters", MaxKey)}
	}
	for _, c := range []byte(key) {
		if !isKeyByte(c) {
			return &KeyError{key, "want letters, digits and ._:/- only"}
		}
	}
	return nil
}

func isKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == ':' || c == '/' || c == '-'
}

// checkPut refuses what cannot be put.
func checkPut(key, value string) error {
	if len(value) > MaxValue {
		return &KeyError{key, fmt.Sprintf("a value of %d bytes is more than %d", len(value), MaxValue)}
	}
	return checkKey(key)
}
