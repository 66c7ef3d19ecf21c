package collective

import (
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// Comm is the state of a communicator for its collective calls. All ranks make the
// calls of a communicator in the same order. The nil pointer is the null communicator, whose calls
// return ErrComm.
type Comm struct {
	*comm.Comm
	job        *Job
	processors int   // number of processors of all ranks together
	sharesNode bool  // all ranks are on one node and may share memory
	fixedTag   int32 // tag of all calls of a group, see NewGroup; 0 if each call has its own
	usable     func() error
	fail       func(op, args string, err error) error

	mu             sync.Mutex
	seq            uint32  // sequence number of the last call
	callCount      uint64  // number of calls that have started
	log            callLog // calls that are compared with those of other ranks
	lastCall       string  // name of the last call
	idleCalls      []*call // free list
	activeCalls    int     // number of calls in progress
	releaseContext func()  // returns the context id

	sharedMemory sharedMemory
	callQueue    callQueue
	channels     commRDMAChannels
}

// The sequence number of a call is the tag of its messages. persistentTag is set in the messages
// of persistent calls, which may last longer than maxSeq other calls; checkTag is set in messages
// that compare calls before they execute. groupTag marks the calls of a group, which has no
// context of its own yet: the calls of the communicator set persistentTag or checkTag but never
// both.
const (
	maxSeq        = 1<<29 - 1
	persistentTag = 1 << 29
	checkTag      = 1 << 30
	groupTag      = persistentTag | checkTag
	MaxGroupTag   = maxSeq >> 1
)

// ProcessorCount returns the number of processors of all ranks together.
func (c *Comm) ProcessorCount() int { return c.processors }

// SharedBoard returns the shared memory of the communicator, nil if there is none.
func (c *Comm) SharedBoard() *shm.Board { return c.sharedMemory.board }

// Free ends the use of the communicator, which is marked as freed. Calls in progress complete;
// the last one returns the context id. Free returns the mismatch that LateMismatch would return.
func (c *Comm) Free() error {
	c.job.comms.keepFreed(c)
	c.mu.Lock()
	c.idleCalls = nil
	c.releaseIfUnused()
	return c.LateMismatch()
}

// releaseIfUnused returns the context id of a communicator that is freed and has no calls in
// progress. The caller holds c.mu; releaseIfUnused unlocks it, because holders of the engine's
// lock may wait for it.
func (c *Comm) releaseIfUnused() {
	release := c.releaseContext
	if c.activeCalls > 0 || release == nil || !c.Freed.Load() {
		c.mu.Unlock()
		return
	}
	c.releaseContext = nil
	c.mu.Unlock()
	c.channels.closeAll(c)
	c.sharedMemory.release()
	release()
}

// Run executes a blocking call.
func (c *Comm) Run(o *Op) error {
	k, err := c.beginCall(o)
	if err != nil {
		return err
	}
	err = errNoReturn
	defer func() { c.endCall(k, err) }() // also if the program's operation panics
	err = k.runBlocking()
	return err
}

// errNoReturn is the error of a call whose operation, a function of the program, panicked or called
// runtime.Goexit.
var errNoReturn = fmt.Errorf("%w: the operation did not return", datatype.ErrOp)

// RunAs is Run of the call op, which is built on another. args must be equal at all ranks.
func (c *Comm) RunAs(op string, o Op, args ...any) error {
	o.calledAs, o.argsHash = op, argumentsHash(args...)
	return c.Run(&o)
}
