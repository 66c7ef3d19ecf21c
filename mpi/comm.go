package mpi

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/pt2pt"
)

// Comm is a communicator: some ranks of a job, numbered from 0, with a message context of their
// own. Its methods are safe for concurrent use. All ranks make the collective calls of a
// communicator in the same order.
type Comm struct {
	world    *job
	base     comm.Comm
	messages *pt2pt.Comm      // its messages
	calls    *collective.Comm // its collective calls
	handler  atomic.Pointer[func(*Error)]

	mu    sync.Mutex
	attrs []attrValue // guarded by mu
}

// newComm returns a communicator with a context id that all its ranks have agreed on. ranks
// lists the job ranks of its members; nil means that the numbers are equal. release returns the
// context id; it is nil if the communicator cannot be freed.
func (j *job) newComm(name string, id uint32, ranks []int, rank, size int, release func()) *Comm {
	c := &Comm{world: j}
	c.base.Usable, c.base.Fail = c.checkUsable, c.fail
	c.base.Init(j.Engine, id, name, ranks, rank, size)
	c.messages = j.messages.NewComm(&c.base)
	shares := size > 1 && !j.o.NoShared && j.Placement.OnOneNode(size, c.base.WorldRank)
	c.calls = j.Calls.NewComm(&c.base, collective.Config{Processors: j.Placement.CountProcessors(size, c.base.WorldRank), SharesNode: shares, Release: release})
	return c
}

// Rank returns this process's rank in the communicator (MPI_Comm_rank), Undefined for the null
// communicator.
func (c *Comm) Rank() int {
	if c.isNull() {
		return Undefined
	}
	return c.base.Rank
}

// Size returns the number of ranks (MPI_Comm_size), 0 for the null communicator.
func (c *Comm) Size() int {
	if c == nil {
		return 0
	}
	return c.base.Size
}

// Name returns the name of the communicator in errors (MPI_Comm_get_name), "null" for the null
// communicator.
func (c *Comm) Name() string {
	if c.isNull() {
		return "null"
	}
	return c.base.Name()
}

// SetName sets the name of the communicator at this rank (MPI_Comm_set_name). It has no effect
// on the null communicator.
func (c *Comm) SetName(name string) {
	if c != nil {
		c.base.SetName(name)
	}
}

// String returns the name, the rank and the size.
func (c *Comm) String() string {
	if c.isNull() {
		return "null communicator"
	}
	return fmt.Sprintf("%s (rank %d of %d)", c.Name(), c.base.Rank, c.base.Size)
}

// Free ends the use of the communicator at this rank (MPI_Comm_free). All ranks call it after
// they have received all messages. It frees the attributes. Collective calls in progress
// complete. World and Self cannot be freed, and a second Free returns ErrFreed. An ErrMismatch of an earlier call does not keep the
// communicator from being freed.
func (c *Comm) Free() error {
	if c.isNull() {
		return c.fail("free", "", errNullComm)
	}
	if c.base.ContextID < comm.FirstID {
		return c.fail("free", "", fmt.Errorf("%w: world and self cannot be freed; call Finalize", ErrComm))
	}
	if c.base.Freed.Swap(true) {
		return c.fail("free", "", ErrFreed)
	}
	defer c.freeAttrs() // last: a function of the program may panic
	if mismatch := c.calls.Free(); mismatch != nil {
		return c.fail("free", "", mismatch)
	}
	return nil
}
