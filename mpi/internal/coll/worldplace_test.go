package coll_test

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// exposure is memory of a rank that other ranks write to.
type exposure struct {
	rank  int
	mem   []byte
	valid bool // it is the rank's current memory
	open  int  // writes that are outstanding
}

// RegisterTarget implements coll.RDMANet.
func (r *rank) RegisterTarget(b []byte) (a coll.Address, known bool, err error) {
	w := r.w
	if e := r.exposed; e != nil && len(e.mem) == len(b) && &e.mem[0] == &b[0] {
		known = true
	} else {
		if e != nil {
			e.valid = false
		}
		r.exposed = &exposure{rank: r.id, mem: b, valid: true}
		w.exposures = append(w.exposures, r.exposed)
		r.number = len(w.exposures)
	}
	if r.exposed.open != 0 {
		w.failf("rank %d calls before %d have written", r.id, r.exposed.open)
	}
	r.exposed.open = r.Size() - 1
	binary.LittleEndian.PutUint64(a[:], uint64(r.number))
	return a, known, nil
}

// RegisterSource implements coll.RDMANet.
func (r *rank) RegisterSource(b []byte) error {
	r.pinned = b
	return nil
}

// SetRemoteAddress implements coll.RDMANet.
func (r *rank) SetRemoteAddress(rank int, a coll.Address) error {
	i := binary.LittleEndian.Uint64(a[:])
	if i == 0 || i > uint64(len(r.w.exposures)) || r.w.exposures[i-1].rank != rank {
		return fmt.Errorf("address %d", i)
	}
	if r.theirs == nil {
		r.theirs = map[int]*exposure{}
	}
	if r.theirs[rank] == r.w.exposures[i-1] {
		r.w.failf("rank %d gets the address of rank %d a second time", r.id, rank)
	}
	r.theirs[rank] = r.w.exposures[i-1]
	return nil
}

// Transports implements coll.TransportNet.
func (*rank) Transports() coll.Transports { return coll.UnreliableDatagrams }

// CanWrite implements coll.RDMANet.
func (*rank) CanWrite() bool { return true }

// Write implements coll.RDMANet: the data arrives at once, or with the notification.
func (r *rank) Write(to, off int, b []byte) coll.Request {
	e := r.theirs[to]
	first := &r.pinned[to*len(b)]
	switch {
	case first != &b[0]:
		r.w.failf("rank %d writes from memory that is not pinned", r.id)
	case e == nil || !e.valid:
		r.w.failf("rank %d writes to rank %d where its memory is not any more", r.id, to)
	case e.open == 0:
		r.w.failf("rank %d writes to rank %d, which has not called", r.id, to)
	default:
		q := r.isend(r.w.placements, to, nil)
		q.b, q.was = b, bytes.Clone(b)
		if q.place = e.mem[off:][:len(b)]; r.w.rng != nil && r.w.rng.IntN(2) == 0 {
			q.write()
		}
		r.w.bytes += len(b)
		r.sent += len(b)
		return q
	}
	return &request{done: true}
}

// write copies the data of an RDMA write to its destination.
func (q *request) write() {
	copy(q.place, q.was)
	q.place = nil
}

// WriteArrived implements coll.RDMANet.
func (r *rank) WriteArrived(from int) coll.Request {
	q := r.irecv(r.w.placements, from, nil)
	q.opened = r.exposed
	return q
}

// CanQueue implements coll.SharedQueueNet.
func (*rank) CanQueue() bool { return true }

// OpenQueue implements coll.SharedQueueNet.
func (r *rank) OpenQueue(_, _ []byte) error { return nil }

// PostShared implements coll.SharedQueueNet.
func (r *rank) PostShared(b []byte) coll.Request {
	for i := range b {
		b[i] = byte(0x5a + i)
	}
	q := &request{rank: r.id, peer: r.id, recv: true, b: b, was: bytes.Clone(b), posted: r.clock}
	r.queue = append(r.queue, q)
	r.begun = append(r.begun, q)
	return q
}

// SendShared implements coll.SharedQueueNet: the message matches the first receive.
func (r *rank) SendShared(to int, b []byte) coll.Request {
	q := &request{rank: r.id, peer: to, b: b, was: bytes.Clone(b), posted: r.clock, done: true}
	r.begun = append(r.begun, q)
	peer := r.w.ranks[to]
	if len(peer.queue) == 0 {
		r.w.failf("rank %d sends to rank %d, which has no receive", r.id, to)
		return q
	}
	in := peer.queue[0]
	peer.queue = peer.queue[1:]
	if in.check(); len(in.b) != len(b) {
		r.w.failf("rank %d sends %d bytes to rank %d, which expects %d", r.id, len(b), to, len(in.b))
	}
	copy(in.b, b)
	in.was = bytes.Clone(in.b)
	r.w.complete(in, r.clock)
	return q
}
