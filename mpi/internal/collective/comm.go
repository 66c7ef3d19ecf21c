package collective

import (
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// Job is the state that the communicators of a rank share: their table and their RDMA
// channels.
type Job struct {
	Options
	Contexts *ContextIDs
	engine   *engine.Engine
	detector Detector
	comms    commTable[Comm]
	channels rdmaChannels
}

// Options are the options of a job that concern collective calls.
type Options struct {
	Check      bool            // compare calls before they execute
	Choices    coll.Choices    // algorithms chosen by name
	Transports coll.Transports // of messages between the ranks; 0 for none that package coll knows

	// OpenSegment maps the shared memory that rank 0 of a communicator has created: shm.Open
	// if it is nil.
	OpenSegment func(name string, size int) (*shm.Segment, error)
}

// Detector sends the packets by which the ranks compare calls (package deadlock).
type Detector interface {
	// SendPacket sends a packet to a rank of the job.
	SendPacket(core *protocol.Core, to int, h envelope.Header, payload []byte)
	// SendMismatch sends a deadlock.PacketMismatch and expects its confirmation, for which the
	// last flush of the rank waits.
	SendMismatch(core *protocol.Core, to int, contextID uint32, payload []byte)
}

// Comm is the state of a communicator for its collective calls. All ranks make the calls of a
// communicator in the same order. The nil pointer is the null communicator, whose calls
// return ErrComm.
type Comm struct {
	*comm.Comm
	job        *Job
	Processors int   // number of processors of all ranks together
	sharesNode bool  // all ranks are on one node and may share memory
	fixedTag   int32 // tag of all calls of a group, see NewGroup; 0 if each call has its own

	mu             sync.Mutex
	seq            uint32       // sequence number of the last call
	callCount      uint64       // number of calls that have started
	log            callLog      // calls that are compared with those of other ranks
	lastCall       string       // name of the last call
	idleCalls      []*execution // free list
	activeCalls    int          // number of calls in progress
	releaseContext func()       // returns the context id

	Shared    sharedMemory
	callQueue callQueue
	channels  commRDMAChannels
}

// Free ends the use of the communicator, which is marked as freed. Calls in progress complete;
// the last one returns the context id. Free returns the mismatch that LateMismatch would return.
func (c *Comm) Free() error {
	c.job.comms.keepFreed(c.ContextID, c)
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
	c.channels.closeAll(&c.job.channels)
	c.Shared.release()
	release()
}

// LateMismatch returns, once, the mismatch of a call that was complete when it was found.
func (c *Comm) LateMismatch() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.log.lateMismatch; d != nil {
		c.log.lateMismatch = nil
		return d
	}
	return nil
}
