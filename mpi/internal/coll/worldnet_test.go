package coll_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

func (r *rank) Rank() int { return r.id }
func (r *rank) Size() int { return len(r.w.ranks) }

func (r *rank) Isend(to int, b []byte) coll.Request { return r.isend(r.w.mail, to, b) }

func (r *rank) isend(on mail, to int, b []byte) *request {
	q := &request{on: on, rank: r.id, peer: to, b: b, was: bytes.Clone(b), posted: r.clock}
	c := r.w.channel(on, r.id, to)
	c.sends = append(c.sends, q)
	r.begun = append(r.begun, q)
	r.w.messages++
	q.number = r.w.messages
	r.w.bytes += len(b)
	r.sent += len(b)
	// A network may send small messages at once; the memory still belongs to it until Wait.
	q.done = r.w.rng != nil && r.w.rng.IntN(2) == 0
	r.w.match(on, r.id, to)
	return q
}

func (r *rank) Irecv(from int, b []byte) coll.Request { return r.irecv(r.w.mail, from, b) }

func (r *rank) irecv(on mail, from int, b []byte) *request {
	for i := range b {
		b[i] = byte(0xa5 + i)
	}
	q := &request{on: on, rank: r.id, peer: from, recv: true, b: b, was: bytes.Clone(b), posted: r.clock}
	c := r.w.channel(on, from, r.id)
	c.recvs = append(c.recvs, q)
	r.begun = append(r.begun, q)
	r.w.match(on, from, r.id)
	return q
}

func (r *rank) Wait(all ...coll.Request) error {
	if len(all) == 0 {
		return fmt.Errorf("rank %d waits for nothing", r.id)
	}
	r.waiting, r.missing = r.waiting[:0], 0
	for _, q := range all {
		q := q.(*request)
		if q.waited {
			return fmt.Errorf("rank %d waits a second time for %v", r.id, q)
		}
		q.waited = true
		r.waiting = append(r.waiting, q)
		if !q.done {
			q.awaited = true
			r.missing++
		}
	}
	if r.missing == 0 {
		r.w.runnable = append(r.w.runnable, r)
	}
	if r.stopped || !r.yield(struct{}{}) {
		return errStopped
	}
	var errs []error
	for _, q := range r.waiting {
		q.check()
		errs = append(errs, q.err)
		r.clock = max(r.clock, q.end)
	}
	r.waiting = r.waiting[:0]
	return errors.Join(errs...)
}

// memory implements coll.Memory.
type memory struct {
	out       [][]byte
	most, now int // bytes
	back      int // parts that were freed
}

func (m *memory) Alloc(n int) []byte {
	if n <= 0 {
		panic("memory of length 0 allocated")
	}
	b := make([]byte, n, n+8)
	for i := range b {
		b[i] = 0xdb
	}
	m.out = append(m.out, b)
	m.now += n
	m.most = max(m.most, m.now)
	return b
}

func (m *memory) Free(b []byte) {
	i := slices.IndexFunc(m.out, func(o []byte) bool { return &o[0] == &b[0] })
	if i < 0 || len(m.out[i]) != len(b) {
		panic("freed memory was not allocated")
	}
	m.out = slices.Delete(m.out, i, i+1)
	m.now -= len(b)
	m.back++
	for i := range b {
		b[i] = 0xdd
	}
}
