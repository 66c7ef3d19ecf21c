package collective

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
)

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

// runBlocking compares the call with those of the other ranks if Options.Check is set, and executes it.
func (k *execution) runBlocking() error {
	if err := k.checkAgreement(); err != nil {
		return err
	}
	if k.alg.Last = k.op.isFinalize; k.op.isFinalize {
		k.tag |= persistentTag // a tag that no blocking call uses
	}
	if err := k.executeAlgorithm(); err != nil || k.op.isFinalize { // a late mismatch does not make the last barrier fail
		return err
	}
	return k.comm.LateMismatch()
}

// executeAlgorithm runs the algorithm on contiguous memory and unpacks the result.
func (k *execution) executeAlgorithm() error {
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
		k.reducer.Size, k.reducer.Commutative, k.reducer.Predefined = max(1, k.op.reduceBuffer().ElementSize()), o.reduceOp.Commutative(), o.reduceOp.Predefined()
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
func (k *execution) resultError(err error) error {
	mismatch := k.mismatch.Load()
	if mismatch == nil {
		return err
	}
	k.comm.mu.Lock()
	k.comm.log.clearLate(mismatch)
	k.comm.mu.Unlock()
	if err == nil || errors.Is(err, deadlock.ErrMismatch) {
		return mismatch
	}
	return errors.Join(mismatch, err)
}

// runAlgorithm runs the collective on contiguous memory.
func (k *execution) runAlgorithm(send, recv []byte) error {
	o, d, rank := &k.op, &k.alg, k.comm.Rank
	if o.grid != nil {
		return k.exchangeBlocks(o.grid, o.collective, send, recv)
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
func (k *execution) runReduction(send, recv []byte) error {
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
func (k *execution) runAlltoallw() error {
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
func (k *execution) contiguousBytes(b datatype.Buffer) []byte {
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
func (k *execution) rankBlock(mem []byte, rank int) []byte {
	n := len(mem) / k.comm.Size
	return mem[rank*n:][:n:n]
}

// partOf returns the memory of a part.
func partOf(mem []byte, p coll.Part) []byte { return mem[p.At:][:p.Len:p.Len] }
