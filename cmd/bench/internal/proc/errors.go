package proc

import (
	"errors"
	"fmt"
)

// Errors of workers and groups, for errors.Is.
var (
	ErrExited  = errors.New("proc: worker exited early")
	ErrTimeout = errors.New("proc: reply timed out")
	ErrClosed  = errors.New("proc: group closed")
)

// A WorkerError is the failure of one worker of a group.
type WorkerError struct {
	Name, Role string
	Rank       int
	PID        int
	Err        error
	Stderr     string // the last lines of its stderr; often empty
}

func (e *WorkerError) Error() string {
	s := fmt.Sprintf("worker %s/%s (rank %d, pid %d): %v", e.Name, e.Role, e.Rank, e.PID, e.Err)
	if e.Stderr != "" {
		s += "; the end of its stderr:\n" + e.Stderr
	}
	return s
}

func (e *WorkerError) Unwrap() error { return e.Err }
