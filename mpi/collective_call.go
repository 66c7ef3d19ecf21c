package mpi

import (
	"errors"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/coll"
	"github.com/softrnic/softrnic/mpi/protocol"
)

// call is a collective call under way: the algorithm's state, its messages, and
// scratch memory. A communicator keeps those that are done for the next.
type call struct {
	comm    *Comm
	op      operation
	refused error // why its arguments cannot be
	do      coll.Call
	red     coll.Reduction
	scratch scratch
	net     net
	sign    callSign                     // 0: it is compared before
	bad     atomic.Pointer[disagreement] // what is wrong with it, once that is known
	round   uint64                       // its number among the calls of the communicator, from 1

	sendParts, recvParts []coll.Part
	sends, recvs         [][]byte // of Alltoallw
	counts               []int    // of ReduceScatter, in bytes
	packed               [][]byte // scratch memory that buffers were packed in
	work                 *work    // of a call in the background, or nil
	kept                 *lane    // of a persistent call
}

func (c *Comm) newCall() *call {
	k := &call{comm: c}
	k.net.c, k.net.call = c, k
	k.do = coll.Call{Net: &k.net, Memory: &k.scratch, Choices: c.world.o.Algorithms, Processors: c.cpus}
	k.red.Reduce = func(inout, in []byte) error { return k.op.op.Apply(k.vector().Kind(), inout, in) }
	return k
}

// maxCalls is how many calls that are done a communicator keeps.
const maxCalls = 16

// take begins a call: its place among those of the communicator is taken. Where
// calls are compared those whose arguments cannot be take part in that.
func (c *Comm) take(o *operation) (*call, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	refused := c.valid(o)
	if refused != nil && !c.world.o.Check {
		return nil, refused
	}
	c.mu.Lock()
	if c.freed.Load() {
		c.mu.Unlock()
		return nil, ErrFreed
	}
	var k *call
	if n := len(c.idle) - 1; n >= 0 {
		k = c.idle[n]
		c.idle = c.idle[:n]
	}
	c.active++
	c.seq++
	c.rounds++
	c.lastName = o.name()
	tag := int32(c.seq & maxSeq)
	if c.tag != 0 {
		tag = c.tag
	}
	if k == nil {
		k = c.newCall()
	}
	k.op, k.net.tag, k.refused, k.round = *o, tag, refused, c.rounds
	if k.sign = 0; c.size > 1 && !c.world.o.Check {
		k.sign = k.newSign()
	}
	var bad *disagreement
	news := false
	if c.tag == 0 && c.size > 1 && k.sign != 0 {
		bad, news = c.log.begin(k, c.rank)
	}
	k.bad.Store(bad)
	k.net.ended.Store(nil)
	k.net.met = 0
	if k.waits() {
		c.line.join(k)
	}
	c.mu.Unlock()
	if news {
		c.eng.Do(func(core *protocol.Core) { c.tellDisagreement(core, bad) })
	}
	return k, nil
}

// waits reports whether the call has a place in the line of its communicator.
func (k *call) waits() bool { return k.op.form == background && k.op.exchanges() }

// aside reports whether the call goes on in the background, and nobody waits for it.
func (k *call) aside() bool { return k.work != nil && k.work.waiting.Load() == 0 }

// give ends a call. One that has failed may still have messages on their way, and
// is not used again.
func (c *Comm) give(k *call, err error) {
	if k.waits() {
		c.line.leave(k)
	}
	if err != nil {
		k.net.abandon()
	} else {
		k.rest()
		k.op, k.work = operation{}, nil
	}
	k.closeBoard()
	if k.kept != nil {
		c.world.lanes.end(k.kept)
		k.kept = nil
	}
	c.mu.Lock()
	left, number, sign := c.log.end(k, err), uint32(k.net.tag)&maxSeq, k.sign
	if err == nil && len(c.idle) < maxCalls {
		c.idle = append(c.idle, k)
	}
	c.active--
	c.retire()
	if left {
		c.findLeft(number, sign)
	}
}

// rest forgets the buffers of a call that is done.
func (k *call) rest() {
	clear(k.sends)
	clear(k.recvs)
	for _, b := range k.packed {
		k.scratch.Put(b)
	}
	k.packed = k.packed[:0]
}

// run does the call, if all ranks make the same.
func (k *call) run() error {
	if err := k.check(); err != nil {
		return err
	}
	if k.do.Last = k.op.last; k.op.last {
		k.net.tag |= keptTag // by which no blocking call goes
	}
	if err := k.again(); err != nil || k.op.last { // what came out late does not make the last barrier fail
		return err
	}
	return k.comm.lateDisagreement()
}

// again does the call.
func (k *call) again() error {
	o := &k.op
	if err := k.end(nil); err != nil {
		return err
	}
	k.do.Sign = uint64(k.sign)
	if o.what == coll.Alltoallw {
		return k.lists()
	}
	var send, recv []byte
	scatters := o.what == coll.Scatter || o.what == coll.Scatterv
	if !o.inPlace || scatters {
		send = k.bytes(o.send)
	}
	if !o.inPlace || !scatters {
		recv = k.bytes(o.recv)
	}
	if shapes[o.what].op {
		k.red.Size, k.red.Commutative, k.red.Predefined = max(1, k.vector().ElementSize()), o.op.Commutative(), o.op.Predefined()
	}
	err := k.end(k.algorithm(send, recv))
	if k.closeLane(err); err != nil {
		return err
	}
	if o.what != coll.Bcast || o.root != k.comm.rank {
		unpack(o.recv, recv)
	}
	return nil
}

// end is the error of an algorithm, and what has been found to be wrong with the call: a
// rank that has heard of it may have left.
func (k *call) end(err error) error {
	bad := k.bad.Load()
	if bad == nil {
		return err
	}
	k.comm.mu.Lock()
	k.comm.log.told(bad)
	k.comm.mu.Unlock()
	if err == nil || errors.Is(err, ErrMismatch) {
		return bad
	}
	return errors.Join(bad, err)
}

// vector is what a reduction combines, in place or not.
func (k *call) vector() Buffer {
	if k.op.inPlace {
		return k.op.recv
	}
	return k.op.send
}

// algorithm runs it on packed memory.
func (k *call) algorithm(send, recv []byte) error {
	o, d, rank := &k.op, &k.do, k.comm.rank
	if o.cart != nil {
		return o.cart.exchange(&k.net, o.what, send, recv)
	}
	switch o.what {
	case coll.Barrier:
		return d.Barrier()
	case coll.Bcast:
		return d.Bcast(o.root, recv)
	case coll.Gather:
		if o.inPlace {
			send = k.piece(recv, rank)
		}
		return d.Gather(o.root, send, recv)
	case coll.Gatherv:
		k.recvParts = o.recvParts.bytes(k.recvParts, o.recv)
		if o.inPlace {
			send = at(recv, k.recvParts[rank])
		}
		return d.Gatherv(o.root, send, recv, k.recvParts)
	case coll.Scatter:
		if o.inPlace {
			recv = k.piece(send, rank)
		}
		return d.Scatter(o.root, send, recv)
	case coll.Scatterv:
		k.sendParts = o.sendParts.bytes(k.sendParts, o.send)
		if o.inPlace {
			recv = at(send, k.sendParts[rank])
		}
		return d.Scatterv(o.root, send, k.sendParts, recv)
	case coll.Allgather:
		if o.inPlace {
			send = k.piece(recv, rank)
		}
		return d.Allgather(send, recv)
	case coll.Allgatherv:
		k.recvParts = o.recvParts.bytes(k.recvParts, o.recv)
		if o.inPlace {
			send = at(recv, k.recvParts[rank])
		}
		return d.Allgatherv(send, recv, k.recvParts)
	case coll.Alltoall:
		if o.inPlace {
			send = recv
		}
		return d.Alltoall(send, recv)
	case coll.Alltoallv:
		k.recvParts = o.recvParts.bytes(k.recvParts, o.recv)
		if o.inPlace {
			return d.Alltoallv(recv, k.recvParts, recv, k.recvParts)
		}
		k.sendParts = o.sendParts.bytes(k.sendParts, o.send)
		return d.Alltoallv(send, k.sendParts, recv, k.recvParts)
	}
	return k.reduction(send, recv)
}

// reduction runs one on packed memory.
func (k *call) reduction(send, recv []byte) error {
	o, d := &k.op, &k.do
	if o.inPlace {
		send = recv
	}
	switch o.what {
	case coll.Reduce:
		return d.Reduce(o.root, send, recv, k.red)
	case coll.Allreduce:
		return d.Allreduce(send, recv, k.red)
	case coll.ReduceScatter:
		k.counts = k.counts[:0]
		for _, n := range o.sendParts.counts {
			k.counts = append(k.counts, n*k.red.Size)
		}
		return d.ReduceScatter(send, recv[:k.counts[k.comm.rank]], k.counts, k.red)
	case coll.ReduceScatterBlock:
		return d.ReduceScatterBlock(send, recv[:len(send)/k.comm.size], k.red)
	case coll.Scan:
		return d.Scan(send, recv, k.red)
	default:
		return d.Exscan(send, recv, k.red)
	}
}

// lists does Alltoallw.
func (k *call) lists() error {
	o := &k.op
	k.sends, k.recvs = k.sends[:0], k.recvs[:0]
	for _, b := range o.recvs {
		k.recvs = append(k.recvs, k.bytes(b))
	}
	for _, b := range o.sends {
		k.sends = append(k.sends, k.bytes(b))
	}
	sends := k.sends
	if o.inPlace {
		sends = k.recvs
	}
	if err := k.end(k.do.Alltoallw(sends, k.recvs)); err != nil {
		return err
	}
	for i, b := range o.recvs {
		unpack(b, k.recvs[i])
	}
	return nil
}

// bytes is a message in one piece: the program's memory, or a packed copy. What is
// received is packed as well, since not all of it may be received.
func (k *call) bytes(b Buffer) []byte {
	if mem, ok := b.Contiguous(); ok {
		return mem
	}
	mem := k.scratch.Get(b.Size())
	k.packed = append(k.packed, mem)
	b.Pack(mem)
	return mem
}

// unpack brings what was received in a packed copy to where it belongs.
func unpack(b Buffer, mem []byte) {
	if _, ok := b.Contiguous(); !ok {
		b.Unpack(mem)
	}
}

// piece is a rank's of equal ones.
func (k *call) piece(mem []byte, rank int) []byte {
	n := len(mem) / k.comm.size
	return mem[rank*n:][:n:n]
}

func at(mem []byte, p coll.Part) []byte { return mem[p.At:][:p.Len:p.Len] }

// bytes is the parts of a packed buffer.
func (p parts) bytes(list []coll.Part, b Buffer) []coll.Part {
	size, at := b.ElementSize(), 0
	list = list[:0]
	for i, n := range p.counts {
		if p.displs != nil {
			at = p.displs[i]
		}
		list = append(list, coll.Part{At: at * size, Len: n * size})
		at += n
	}
	return list
}
