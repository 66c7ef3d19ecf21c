package mpi

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/engine"
	"github.com/softrnic/softrnic/mpi/protocol"
)

// Comm is a communicator: some ranks of a job, numbered from 0, whose messages
// are not mixed up with those of any other. Its methods may be called from any
// goroutine; collective calls are made in the same order by all of its ranks.
type Comm struct {
	world  *World
	eng    *engine.Engine
	name   atomic.Pointer[string]
	id     uint32 // of its messages; id+1 of its collectives'
	rank   int
	size   int
	ranks  []int       // of the job, by rank here; nil if they are the same
	here   map[int]int // the other way round
	cpus   int         // of all ranks together
	shares bool        // they may share memory
	freed  atomic.Bool
	tag    int32 // of all its collective calls, see CreateGroup; 0 is one for each

	handler atomic.Pointer[func(*Error)]

	mu       sync.Mutex
	seq      uint32  // of the last collective call
	rounds   uint64  // so many collective calls have begun
	log      callLog // what is known of them
	lastName string  // of that call
	idle     []*call // to be used again
	attrs    []attrValue
	active   int    // calls under way
	release  func() // gives the number back

	sharing sharing
	line    line
	lanes   commLanes
	probes  probes
}

// The number of a collective call is its messages' tag. Of persistent ones, which
// may last, one bit is set, and of messages that compare calls before they are done
// another.
const (
	maxSeq   = 1<<29 - 1
	keptTag  = 1 << 29
	checkTag = 1 << 30
)

func (w *World) comm(name string, id uint32, ranks []int, rank, size int) *Comm {
	c := &Comm{world: w, eng: w.eng, id: id, rank: rank, size: size, ranks: ranks}
	c.SetName(name)
	if ranks != nil {
		c.here = make(map[int]int, len(ranks))
		for i, r := range ranks {
			c.here[r] = i
		}
	}
	c.cpus, c.shares = w.cpus.of(c), c.near()
	w.eng.Do(func(core *protocol.Core) {
		w.comms.add(c)
		c.compareEarly(core)
	})
	return c
}

// Rank is this process's number in the communicator (MPI_Comm_rank).
// In the null communicator it is Undefined.
func (c *Comm) Rank() int {
	if c.isNull() {
		return Undefined
	}
	return c.rank
}

// Size is the number of its ranks (MPI_Comm_size), 0 of the null communicator.
func (c *Comm) Size() int {
	if c == nil {
		return 0
	}
	return c.size
}

// Name returns the name of the communicator in errors (MPI_Comm_get_name), "null" of the null communicator.
func (c *Comm) Name() string {
	if c.isNull() {
		return "null"
	}
	return *c.name.Load()
}

// SetName gives it another name, which is this rank's own business
// (MPI_Comm_set_name). The null communicator keeps its own.
func (c *Comm) SetName(name string) {
	if c != nil {
		c.name.Store(&name)
	}
}

// String returns the name with the rank and the size.
func (c *Comm) String() string {
	if c.isNull() {
		return "null communicator"
	}
	return fmt.Sprintf("%s (rank %d of %d)", c.Name(), c.rank, c.size)
}

// job is a rank's number in the job.
func (c *Comm) job(rank int) int {
	if c.ranks == nil {
		return rank
	}
	return c.ranks[rank]
}

// local is the number here of a rank of the job.
func (c *Comm) local(rank int) int {
	if c.ranks == nil || rank < 0 {
		return rank
	}
	if i, ok := c.here[rank]; ok {
		return i
	}
	return Undefined
}

// Free ends the use of a communicator by this rank (MPI_Comm_free): all ranks
// call it, when all messages have been received. Collective calls that are under
// way go on. Attributes are freed. The world and Self stay. An ErrMismatch of an earlier
// call does not keep it from being freed.
func (c *Comm) Free() error {
	if c.isNull() {
		return c.fail("free", "", errNullComm)
	}
	if c.id < firstID {
		return c.fail("free", "", fmt.Errorf("%w: it ends with Finalize", ErrComm))
	}
	if c.freed.Swap(true) {
		return c.fail("free", "", ErrFreed)
	}
	c.freeAttrs()
	c.world.comms.keepFreed(c)
	c.mu.Lock()
	c.idle = nil
	c.retire()
	if late := c.lateDisagreement(); late != nil {
		return c.fail("free", "", late)
	}
	return nil
}

// retire gives the number of a communicator back that nobody uses any more. The
// caller has the lock, which is released: who has the engine's may want it.
func (c *Comm) retire() {
	release := c.release
	if c.active > 0 || release == nil || !c.freed.Load() {
		c.mu.Unlock()
		return
	}
	c.release = nil
	c.mu.Unlock()
	c.lanes.end(c)
	c.sharing.end()
	release()
}
