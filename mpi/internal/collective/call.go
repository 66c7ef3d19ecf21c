package collective

import (
	"errors"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/comm"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// call is a collective call in progress: the state of the algorithm, its messages and scratch
// memory. A communicator recycles its calls.
type call struct {
	comm      *Comm
	op        Op
	argErr    error // error of its arguments, or nil
	alg       coll.Call
	reducer   coll.Reduction
	scratch   scratch
	net       callNet
	signature callSignature                // 0: the call is compared by Options.Check
	mismatch  atomic.Pointer[callMismatch] // the mismatch found in this call, or nil
	round     uint64                       // sequence number among all calls of the communicator, from 1

	sendParts, recvParts []coll.Part
	sends, recvs         [][]byte     // blocks of Alltoallw
	counts               []int        // counts of ReduceScatter, in bytes
	packed               [][]byte     // scratch memory of packed buffers
	background           *Background  // state of a nonblocking call, or nil
	persistentChannel    *rdmaChannel // RDMA channel of a persistent call
}

// newCall allocates a call.
func (c *Comm) newCall() *call {
	k := &call{comm: c}
	k.net.comm, k.net.call = c, k
	k.alg = coll.Call{Net: &k.net, Memory: &k.scratch, Choices: c.job.Choices, Processors: c.processors}
	k.reducer.Reduce = func(inout, in []byte) error { return k.op.reduceOp.Apply(k.reduceBuffer().Kind(), inout, in) }
	return k
}

// maxIdleCalls is the maximum number of idle calls that a communicator keeps.
const maxIdleCalls = 16

// beginCall starts a call: it validates the arguments and takes the next sequence number. With
// Options.Check a call with invalid arguments is started, too, so that the other ranks learn of
// it.
func (c *Comm) beginCall(o *Op) (*call, error) {
	if c == nil {
		return nil, comm.ErrNull
	}
	if err := c.usable(); err != nil {
		return nil, err
	}
	argErr := c.validateOp(o)
	if argErr != nil && !c.job.Check {
		return nil, argErr
	}
	c.mu.Lock()
	if c.Freed.Load() {
		c.mu.Unlock()
		return nil, comm.ErrFreed
	}
	var k *call
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
	k.op, k.net.tag, k.argErr, k.round = *o, tag, argErr, c.callCount
	if k.signature = 0; c.Size > 1 && !c.job.Check {
		k.signature = k.newSignature()
	}
	var mismatch *callMismatch
	isNew := false
	if c.fixedTag == 0 && c.Size > 1 && k.signature != 0 {
		mismatch, isNew = c.log.recordStart(k, c.Rank)
	}
	k.mismatch.Store(mismatch)
	k.net.endedRanks.Store(nil)
	k.net.unexpected = 0
	if k.isQueued() {
		c.callQueue.push(k)
	}
	c.mu.Unlock()
	if isNew {
		c.Engine.Do(func(core *protocol.Core) { c.broadcastMismatch(core, mismatch) })
	}
	return k, nil
}

// isQueued reports whether the call is in the communicator's queue of nonblocking alltoalls.
func (k *call) isQueued() bool { return k.op.form == nonblocking && k.op.isAlltoall() }

// isUnattended reports whether the call is nonblocking and no goroutine of the program waits
// for it.
func (k *call) isUnattended() bool { return k.background != nil && k.background.waiters.Load() == 0 }

// endCall ends a call. A failed call is not recycled, because its messages may still be in
// flight.
func (c *Comm) endCall(k *call, err error) {
	if k.isQueued() {
		c.callQueue.remove(k)
	}
	if err != nil {
		k.net.cancelReceives()
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
	leftover, number, signature := c.log.recordEnd(k, err), uint32(k.net.tag)&maxSeq, k.signature
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
func (k *call) releaseBuffers() {
	clear(k.sends)
	clear(k.recvs)
	for _, b := range k.packed {
		k.scratch.Free(b)
	}
	k.packed = k.packed[:0]
}

// runBlocking compares the call with those of the other ranks if Options.Check is set, and executes it.
func (k *call) runBlocking() error {
	if err := k.checkAgreement(); err != nil {
		return err
	}
	if k.alg.Last = k.op.isFinalize; k.op.isFinalize {
		k.net.tag |= persistentTag // a tag that no blocking call uses
	}
	if err := k.executeAlgorithm(); err != nil || k.op.isFinalize { // a late mismatch does not make the last barrier fail
		return err
	}
	return k.comm.LateMismatch()
}

// executeAlgorithm runs the algorithm on contiguous memory and unpacks the result.
func (k *call) executeAlgorithm() error {
	o := &k.op
	if err := k.resultError(nil); err != nil {
		return err
	}
	k.alg.Signature = uint64(k.signature)
	if o.collective == coll.Alltoallw {
		return k.runAlltoallw()
	}
	var send, recv []byte
	scatters := o.collective == coll.Scatter || o.collective == coll.Scatterv
	if !o.inPlace || scatters {
		send = k.contiguousBytes(o.send)
	}
	if !o.inPlace || !scatters {
		recv = k.contiguousBytes(o.recv)
	}
	if shapes[o.collective].op {
		k.reducer.Size, k.reducer.Commutative, k.reducer.Predefined = max(1, k.reduceBuffer().ElementSize()), o.reduceOp.Commutative(), o.reduceOp.Predefined()
	}
	err := k.resultError(k.runAlgorithm(send, recv))
	if k.closeChannel(err); err != nil {
		return err
	}
	if o.collective != coll.Bcast || o.root != k.comm.Rank {
		unpackBuffer(o.recv, recv)
	}
	return nil
}

// resultError joins the error of an algorithm with the mismatch found in the call: a rank that
// knows of the mismatch may have left the job.
func (k *call) resultError(err error) error {
	mismatch := k.mismatch.Load()
	if mismatch == nil {
		return err
	}
	k.comm.mu.Lock()
	k.comm.log.clearLate(mismatch)
	k.comm.mu.Unlock()
	if err == nil || errors.Is(err, coll.ErrMismatch) {
		return mismatch
	}
	return errors.Join(mismatch, err)
}

// reduceBuffer returns the buffer that a reduction combines.
func (k *call) reduceBuffer() datatype.Buffer {
	if k.op.inPlace {
		return k.op.recv
	}
	return k.op.send
}

// runAlgorithm runs the collective on contiguous memory.
func (k *call) runAlgorithm(send, recv []byte) error {
	o, d, rank := &k.op, &k.alg, k.comm.Rank
	if o.grid != nil {
		return k.net.exchangeBlocks(o.grid, o.collective, send, recv)
	}
	switch o.collective {
	case coll.Barrier:
		return d.Barrier()
	case coll.Bcast:
		return d.Bcast(o.root, recv)
	case coll.Gather:
		if o.inPlace {
			send = k.rankBlock(recv, rank)
		}
		return d.Gather(o.root, send, recv)
	case coll.Gatherv:
		k.recvParts = o.recvLayout.byteParts(k.recvParts, o.recv)
		if o.inPlace {
			send = partOf(recv, k.recvParts[rank])
		}
		return d.Gatherv(o.root, send, recv, k.recvParts)
	case coll.Scatter:
		if o.inPlace {
			recv = k.rankBlock(send, rank)
		}
		return d.Scatter(o.root, send, recv)
	case coll.Scatterv:
		k.sendParts = o.sendLayout.byteParts(k.sendParts, o.send)
		if o.inPlace {
			recv = partOf(send, k.sendParts[rank])
		}
		return d.Scatterv(o.root, send, k.sendParts, recv)
	case coll.Allgather:
		if o.inPlace {
			send = k.rankBlock(recv, rank)
		}
		return d.Allgather(send, recv)
	case coll.Allgatherv:
		k.recvParts = o.recvLayout.byteParts(k.recvParts, o.recv)
		if o.inPlace {
			send = partOf(recv, k.recvParts[rank])
		}
		return d.Allgatherv(send, recv, k.recvParts)
	case coll.Alltoall:
		if o.inPlace {
			send = recv
		}
		return d.Alltoall(send, recv)
	case coll.Alltoallv:
		k.recvParts = o.recvLayout.byteParts(k.recvParts, o.recv)
		if o.inPlace {
			return d.Alltoallv(recv, k.recvParts, recv, k.recvParts)
		}
		k.sendParts = o.sendLayout.byteParts(k.sendParts, o.send)
		return d.Alltoallv(send, k.sendParts, recv, k.recvParts)
	}
	return k.runReduction(send, recv)
}

// runReduction runs a reduction on contiguous memory.
func (k *call) runReduction(send, recv []byte) error {
	o, d := &k.op, &k.alg
	if o.inPlace {
		send = recv
	}
	switch o.collective {
	case coll.Reduce:
		return d.Reduce(o.root, send, recv, k.reducer)
	case coll.Allreduce:
		return d.Allreduce(send, recv, k.reducer)
	case coll.ReduceScatter:
		k.counts = k.counts[:0]
		for _, n := range o.sendLayout.counts {
			k.counts = append(k.counts, n*k.reducer.Size)
		}
		return d.ReduceScatter(send, recv[:k.counts[k.comm.Rank]], k.counts, k.reducer)
	case coll.ReduceScatterBlock:
		return d.ReduceScatterBlock(send, recv[:len(send)/k.comm.Size], k.reducer)
	case coll.Scan:
		return d.Scan(send, recv, k.reducer)
	default:
		return d.Exscan(send, recv, k.reducer)
	}
}

// runAlltoallw executes Alltoallw.
func (k *call) runAlltoallw() error {
	o := &k.op
	k.sends, k.recvs = k.sends[:0], k.recvs[:0]
	for _, b := range o.recvs {
		k.recvs = append(k.recvs, k.contiguousBytes(b))
	}
	for _, b := range o.sends {
		k.sends = append(k.sends, k.contiguousBytes(b))
	}
	sends := k.sends
	if o.inPlace {
		sends = k.recvs
	}
	if err := k.resultError(k.alg.Alltoallw(sends, k.recvs)); err != nil {
		return err
	}
	for i, b := range o.recvs {
		unpackBuffer(b, k.recvs[i])
	}
	return nil
}

// contiguousBytes returns the memory of a contiguous buffer, or a packed copy. Receive buffers
// are packed as well, because a call may not write all of them.
func (k *call) contiguousBytes(b datatype.Buffer) []byte {
	if mem, ok := b.Contiguous(); ok {
		return mem
	}
	mem := k.scratch.Alloc(b.Size())
	k.packed = append(k.packed, mem)
	b.Pack(mem)
	return mem
}

// unpackBuffer copies received elements from a packed copy to the buffer.
func unpackBuffer(b datatype.Buffer, mem []byte) {
	if _, ok := b.Contiguous(); !ok {
		b.Unpack(mem)
	}
}

// rankBlock returns the block of a rank in memory of equal blocks.
func (k *call) rankBlock(mem []byte, rank int) []byte {
	n := len(mem) / k.comm.Size
	return mem[rank*n:][:n:n]
}

// partOf returns the memory of a part.
func partOf(mem []byte, p coll.Part) []byte { return mem[p.At:][:p.Len:p.Len] }

// byteParts returns the blocks in bytes of a packed buffer, in list.
func (l blockLayout) byteParts(list []coll.Part, b datatype.Buffer) []coll.Part {
	size, at := b.ElementSize(), 0
	list = list[:0]
	for i, n := range l.counts {
		if l.displs != nil {
			at = l.displs[i]
		}
		list = append(list, coll.Part{At: at * size, Len: n * size})
		at += n
	}
	return list
}
