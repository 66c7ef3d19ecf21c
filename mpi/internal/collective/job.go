package collective

import (
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/shm"
)

// NewJob returns the state of a rank that has no communicators yet.
func NewJob(e *engine.Engine, d Detector, o Options) *Job {
	if o.OpenSegment == nil {
		o.OpenSegment = shm.Open
	}
	return &Job{Options: o, Contexts: NewContextIDs(MaxContexts), engine: e, detector: d}
}

// A Config configures a communicator for collective calls.
type Config struct {
	Processors int  // number of processors of all ranks together
	SharesNode bool // all ranks are on one node and may share memory

	// Release returns the context id when the communicator is freed and its calls have ended;
	// nil if it cannot be freed.
	Release func()
}

// NewComm returns the state of a communicator for its collective calls. base has Usable and Fail.
func (j *Job) NewComm(base *comm.Comm, o Config) *Comm {
	c := &Comm{Comm: base, job: j, Processors: o.Processors, sharesNode: o.SharesNode, releaseContext: o.Release}
	j.engine.Do(func(core *protocol.Core) {
		if d := j.comms.add(c.ContextID, c); d != nil {
			c.log.recordMismatch(d, 0)
		}
		c.compareEarly(core)
	})
	return c
}

// NewGroup returns the state for the blocking calls by which the members of a group make a
// communicator. base has Usable, and the members and the context of their common communicator.
// Groups that share ranks and call concurrently need different tags, from 0 to MaxGroupTag.
func (j *Job) NewGroup(base *comm.Comm, tag int) *Comm {
	return &Comm{Comm: base, job: j, fixedTag: groupTag | int32(tag)}
}

// Close releases the shared memory of all communicators.
func (j *Job) Close() {
	for _, c := range j.comms.all() {
		c.Shared.release()
	}
}

// HandleNotify implements protocol.Core.OnNotify: an RDMA write to a channel has arrived.
func (j *Job) HandleNotify(from int, number uint32) error {
	return j.channels.handleNotify(from, number)
}

// HandlePacket handles a packet of the detector of another rank that concerns a collective call:
// a mismatch, or a liveness probe of a call and the reply to it. The caller holds the engine's
// lock.
func (j *Job) HandlePacket(from int, h *envelope.Header, payload []byte) error {
	switch h.Tag {
	case deadlock.PacketMismatch:
		return j.handleMismatch(h, payload)
	case deadlock.PacketCallEnded:
		return j.handleCallEnded(from, h, payload)
	}
	return j.handleCallProbe(from, h, payload)
}

// LateMismatches returns the mismatches of all communicators that were found after the calls had
// returned, wrapped for errors of the call op, each once.
func (j *Job) LateMismatches(op string) (list []error) {
	for _, c := range j.comms.all() {
		if mismatch := c.LateMismatch(); mismatch != nil {
			list = append(list, c.Fail(op, "", mismatch))
		}
	}
	return list
}
