package coll_test

import (
	"bytes"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

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
