package proc

import (
	"errors"
	"fmt"
)

// Why a worker failed, for errors.Is.
var (
	ErrExited  = errors.New("exited before it was told to")
	ErrTimeout = errors.New("did not answer in time")
	ErrClosed  = errors.New("proc: the group is closed")
)

// A WorkerError says which worker of a group failed and how.
type WorkerError struct {
	Name, Role string
	Rank       int
	PID        int
	Err        error
	Stderr     string // the last lines that it wrote to stderr; often empty
}

func (e *WorkerError) Error() string {
	s := fmt.Sprintf("worker %s/%s (rank %d, pid %d): %v", e.Name, e.Role, e.Rank, e.PID, e.Err)
	if e.Stderr != "" {
		s += "; the end of its stderr:\n" + e.Stderr
	}
	return s
}

func (e *WorkerError) Unwrap() error { return e.Err }
