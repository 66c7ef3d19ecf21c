package coll_test

import (
	"bytes"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// Queues implements coll.SharedQueueNet.
func (*rank) Queues() bool { return true }

// Open implements coll.SharedQueueNet.
func (r *rank) Open(_, _ []byte) error { return nil }

// Post implements coll.SharedQueueNet.
func (r *rank) Post(b []byte) coll.Request {
	for i := range b {
		b[i] = byte(0x5a + i)
	}
	q := &request{rank: r.id, peer: r.id, recv: true, b: b, was: bytes.Clone(b), posted: r.clock}
	r.queue = append(r.queue, q)
	r.begun = append(r.begun, q)
	return q
}

// Ship implements coll.SharedQueueNet: it takes the first receive there is.
func (r *rank) Ship(to int, b []byte) coll.Request {
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
