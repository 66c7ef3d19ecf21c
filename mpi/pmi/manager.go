package pmi

import (
	"context"
	"errors"
	"fmt"
)

// A Manager is the process manager of a job, as seen by one rank. All methods are safe
// for concurrent use; requests to the manager are serialized.
type Manager interface {
	// Rank returns the rank of this process, from 0.
	Rank() int

	// Size returns the number of ranks of the job.
	Size() int

	// JobID returns a string that is the same on all ranks and differs between jobs.
	JobID() string

	// Put publishes a value under a key, visible to other ranks after the next Fence. A
	// key consists of at most 40 letters, digits and ._:/- and is put once per job. A
	// value has at most 16 MiB.
	Put(key, value string) error

	// Fence blocks until all ranks have called it: values put before are visible then.
	// A rank calls it from one goroutine at a time. If ctx ends before, the fence stays
	// in progress: the next call of Fence waits for the same one, and other calls block
	// until it is done.
	Fence(ctx context.Context) error

	// Get returns the value of a key, or ErrNotFound.
	Get(ctx context.Context, key string) (string, error)

	// Node returns the index of the host of a rank, from 0. Ranks on one host may share
	// memory. It panics if the rank is out of range.
	Node(rank int) int

	// Abort terminates the job, also while other calls block. The caller should exit
	// with code itself, because the manager may be slower.
	Abort(code int, why string) error

	// Finalize ends the use of the manager. A process that exits without it counts as
	// failed.
	Finalize() error
}

// Limits of keys and values, independent of the manager.
const (
	maxKey   = 40       // characters
	maxValue = 16 << 20 // bytes
)

// Errors of a Manager, wrapped with details: use errors.Is.
var (
	// ErrNotFound says that the key was not put before the last Fence.
	ErrNotFound = errors.New("pmi: key not found")

	// ErrGone says that the manager has closed the connection or does not reply.
	ErrGone = errors.New("pmi: process manager unreachable")

	// ErrFinalized says that Finalize was called.
	ErrFinalized = errors.New("pmi: job finalized")

	// ErrAborted says that a rank of a local job has called Abort.
	ErrAborted = errors.New("pmi: job aborted")

	// ErrKey says that a key or a value is invalid.
	ErrKey = errors.New("pmi: invalid key or value")

	// ErrEnvironment says that an environment variable is invalid, or is that of a launcher
	// that does not speak PMI.
	ErrEnvironment = errors.New("pmi: invalid environment")

	// ErrProtocol says that a reply of the manager is invalid. The connection is unusable
	// afterwards.
	ErrProtocol = errors.New("pmi: invalid reply of the process manager")
)

// newProtocolError returns the ErrProtocol of a reply.
func newProtocolError(request, reply, cause string) error {
	return fmt.Errorf("%w: request %q: reply %q: %s", ErrProtocol, request, reply, cause)
}

// newKeyError returns the ErrKey of a key or of its value.
func newKeyError(key, cause string) error { return fmt.Errorf("%w: key %.60q: %s", ErrKey, key, cause) }

// checkKey rejects keys that a manager may not support.
func checkKey(key string) error {
	if key == "" || len(key) > maxKey {
		return newKeyError(key, fmt.Sprintf("want 1 to %d characters", maxKey))
	}
	for _, c := range []byte(key) {
		if !isKeyByte(c) {
			return newKeyError(key, "want letters, digits and ._:/- only")
		}
	}
	return nil
}

func isKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == ':' || c == '/' || c == '-'
}

// checkPut rejects invalid keys and values.
func checkPut(key, value string) error {
	if len(value) > maxValue {
		return newKeyError(key, fmt.Sprintf("value of %d bytes, limit is %d", len(value), maxValue))
	}
	return checkKey(key)
}
