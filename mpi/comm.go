package mpi

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Comm is a communicator: some ranks of a job, numbered from 0, with a message context of their
// own. Its methods are safe for concurrent use. All ranks make the collective calls of a
// communicator in the same order.
type Comm struct {
	world      *job
	base       comm.Comm
	cpus       int   // number of processors of all ranks together
	sharesNode bool  // all ranks are on one node and may share memory
	fixedTag   int32 // tag of all collective calls, see CreateGroup; 0 if each call has its own

	handler atomic.Pointer[func(*Error)]

	mu             sync.Mutex
	seq            uint32  // sequence number of the last collective call
	callCount      uint64  // number of collective calls that have started
	log            callLog // calls that are compared with those of other ranks
	lastCall       string  // name of the last collective call
	idleCalls      []*call // free list
	attrs          []attrValue
	activeCalls    int    // number of calls in progress
	releaseContext func() // returns the context id

	sharedMemory sharedMemory
	callQueue    callQueue
	channels     commRDMAChannels
	probePolls   probePolls
}

// The sequence number of a collective call is the tag of its messages. persistentTag is set in
// the messages of persistent calls, which may last longer than maxSeq other calls; checkTag is
// set in messages that compare calls before they execute.
const (
	maxSeq        = 1<<29 - 1
	persistentTag = 1 << 29
	checkTag      = 1 << 30
)

// newComm returns a communicator with a context id that all its ranks have agreed on. ranks
// lists the job ranks of its members; nil means that the numbers are equal.
func (j *job) newComm(name string, id uint32, ranks []int, rank, size int) *Comm {
	c := &Comm{world: j}
	c.base.Init(j.eng, id, name, ranks, rank, size)
	c.cpus, c.sharesNode = j.cpus.countFor(c), c.onOneNode()
	j.eng.Do(func(core *protocol.Core) {
		j.comms.add(c)
		c.compareEarly(core)
	})
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
	if c.base.ContextID < firstID {
		return c.fail("free", "", fmt.Errorf("%w: world and self cannot be freed; call Finalize", ErrComm))
	}
	if c.base.Freed.Swap(true) {
		return c.fail("free", "", ErrFreed)
	}
	c.freeAttrs()
	c.world.comms.keepFreed(c)
	c.mu.Lock()
	c.idleCalls = nil
	c.releaseIfUnused()
	if mismatch := c.lateMismatch(); mismatch != nil {
		return c.fail("free", "", mismatch)
	}
	return nil
}

// releaseIfUnused returns the context id of a communicator that is freed and has no calls in
// progress. The caller holds c.mu; releaseIfUnused unlocks it, because holders of the engine's
// lock may wait for it.
func (c *Comm) releaseIfUnused() {
	release := c.releaseContext
	if c.activeCalls > 0 || release == nil || !c.base.Freed.Load() {
		c.mu.Unlock()
		return
	}
	c.releaseContext = nil
	c.mu.Unlock()
	c.channels.closeAll(c)
	c.sharedMemory.release()
	release()
}
