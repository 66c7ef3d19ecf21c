package pt2pt

import (
	"errors"
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// ErrTag is the error of a tag out of range (MPI_ERR_TAG).
var ErrTag = errors.New("mpi: invalid tag")

// MaxTag is the greatest tag (MPI_TAG_UB).
const MaxTag = 1<<31 - 1

// Job is the state of a rank that its communicators share.
type Job struct {
	check bool // messages start with the type signature

	mu       sync.Mutex
	buffered []*Request // buffered sends that are not done
}

// NewJob returns the state of a rank. With check, messages start with the type signature of their
// datatype, which must be equal at all ranks.
func NewJob(check bool) *Job { return &Job{check: check} }

// Comm is a communicator for messages.
type Comm struct {
	*comm.Comm
	job *Job
}

// NewComm returns a communicator for messages. base has Usable and Fail.
func (j *Job) NewComm(base *comm.Comm) *Comm { return &Comm{base, j} }

// NewNullComm returns the null communicator, whose calls return comm.ErrNull. fail is its
// comm.Comm.Fail.
func NewNullComm(fail func(op, args string, err error) error) *Comm {
	return new(Job).NewComm(&comm.Comm{Usable: func() error { return comm.ErrNull }, Fail: fail})
}

// isNull reports whether c is the null communicator.
func (c *Comm) isNull() bool { return c.Engine == nil }

// checkArgs validates the arguments of a send, or of a receive.
func (c *Comm) checkArgs(b datatype.Buffer, rank, tag int, receive bool) error {
	if err := c.Usable(); err != nil {
		return err
	}
	switch {
	case (rank < 0 || rank >= c.Size) && rank != comm.ProcNull && !(receive && rank == match.Any):
		return fmt.Errorf("%w: %d, want [0, %d)", comm.ErrRank, rank, c.Size)
	case tag < 0 && !(receive && tag == match.Any) || tag > MaxTag:
		return fmt.Errorf("%w: %d, want 0 to %d", ErrTag, tag, MaxTag)
	}
	return b.Check(receive)
}

// describeDest returns the destination and the tag of a send, for errors.
func describeDest(dest, tag int) string { return fmt.Sprintf("to %d, tag %d", dest, tag) }

// describeSource returns the source and the tag of a receive as given, for errors.
func describeSource(source, tag int) string { return fmt.Sprintf("from %d, tag %d", source, tag) }
