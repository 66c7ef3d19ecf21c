package collective

import (
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// execution is a collective call in progress: the state of its algorithm, its messages and scratch
// memory. A communicator recycles it.
type execution struct {
	callNet
	alg     coll.Call
	reducer coll.Reduction

	sendParts, recvParts []coll.Part
	sends, recvs         [][]byte // blocks of Alltoallw
	counts               []int    // counts of ReduceScatter, in bytes
	packed               [][]byte // scratch memory of packed buffers
}

// newCall allocates the state of a call.
func (c *Comm) newCall() *execution {
	k := &execution{}
	k.comm = c
	k.alg = coll.Call{Net: &k.callNet, Memory: &k.scratch, Choices: c.job.Choices, Processors: c.Processors}
	k.reducer.Reduce = func(inout, in []byte) error { return k.op.reduceOp.Apply(k.op.reduceBuffer().Kind(), inout, in) }
	return k
}

// maxIdleCalls is the maximum number of idle calls that a communicator keeps.
const maxIdleCalls = 16

// beginCall starts a call: it validates the arguments and takes the next sequence number. With
// Options.Check a call with invalid arguments is started, too, so that the other ranks learn of
// it.
func (c *Comm) beginCall(o *Op) (*execution, error) {
	if c == nil {
		return nil, comm.ErrNull
	}
	if err := c.Usable(); err != nil {
		return nil, err
	}
	if o.argErr = c.validateOp(o); o.argErr != nil && !c.job.Check {
		return nil, o.argErr
	}
	c.mu.Lock()
	if c.Freed.Load() {
		c.mu.Unlock()
		return nil, comm.ErrFreed
	}
	var k *execution
	if n := len(c.idleCalls) - 1; n >= 0 {
		k = c.idleCalls[n]
		c.idleCalls = c.idleCalls[:n]
	}
	c.activeCalls++
	c.seq++
	c.callCount++
	c.lastCall = o.Name()
	tag := int32(c.seq & maxSeq)
	if c.fixedTag != 0 {
		tag = c.fixedTag
	}
	if k == nil {
		k = c.newCall()
	}
	k.op, k.tag, k.round, k.number, k.persistent = *o, tag, c.callCount, uint32(tag)&maxSeq, o.form == persistent
	if k.signature = 0; c.Size > 1 && !c.job.Check {
		k.signature = o.newSignature(c.Rank, c.Size)
	}
	var mismatch *callMismatch
	isNew := false
	if c.fixedTag == 0 && c.Size > 1 && k.signature != 0 {
		mismatch, isNew = c.log.recordStart(&k.comparedCall, c.Rank)
	}
	k.mismatch.Store(mismatch)
	k.endedRanks.Store(nil)
	k.unexpected = 0
	if k.op.isQueued() {
		c.callQueue.push(&k.comparedCall)
	}
	c.mu.Unlock()
	if isNew {
		c.Engine.Do(func(core *protocol.Core) { c.broadcastMismatch(core, mismatch) })
	}
	return k, nil
}

// endCall ends a call. A failed call is not recycled, because its messages may still be in
// flight.
func (c *Comm) endCall(k *execution, err error) {
	if k.op.isQueued() && c.callQueue.remove(&k.comparedCall) {
		c.Engine.Do(func(*protocol.Core) {}) // wakes the next call
	}
	if err != nil {
		k.cancelReceives()
	} else {
		k.releaseBuffers()
		k.op, k.background = Op{}, nil
	}
	k.closeBoard()
	if k.persistentChannel != nil {
		c.job.channels.closeChannel(k.persistentChannel)
		k.persistentChannel = nil
	}
	c.mu.Lock()
	leftover, number, signature := c.log.recordEnd(&k.comparedCall, err), k.number, k.signature
	if err == nil && len(c.idleCalls) < maxIdleCalls {
		c.idleCalls = append(c.idleCalls, k)
	}
	c.activeCalls--
	c.releaseIfUnused()
	if leftover {
		c.findLeftover(number, signature)
	}
}

// releaseBuffers drops the references to the program's buffers and recycles the scratch memory.
func (k *execution) releaseBuffers() {
	clear(k.sends)
	clear(k.recvs)
	for _, b := range k.packed {
		k.scratch.Free(b)
	}
	k.packed = k.packed[:0]
}
