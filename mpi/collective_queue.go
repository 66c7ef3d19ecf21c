package mpi

import (
	"bytes"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Queues implements coll.Queuer. Calls in the background get their lane when it is
// their turn.
func (n *net) Queues() bool {
	_, ok := n.c.eng.Fabric().(*rdma.Fabric)
	return ok && (n.call.waits() || n.Places())
}

// endpointSize is the room for an endpoint, as text.
const endpointSize = 256

// Open implements coll.Queuer: ranks tell each other their ends of connections in
// the first call.
func (n *net) Open(send, recv []byte) error {
	if n.lane == nil {
		if err := n.call.await(); err != nil {
			return err
		}
	}
	l := n.lane
	var err error
	ends := make([]byte, 2*n.c.size*endpointSize)
	end := func(rank, way int) []byte { return ends[(2*rank+way)*endpointSize:][:endpointSize] }
	first := l.queue == nil
	n.c.eng.Do(func(*protocol.Core) {
		if err = l.broken; err == nil {
			_, _, err = l.pinned.take(n.c, send)
		}
		if err == nil {
			_, _, err = l.landing.take(n.c, recv)
		}
		if err != nil || !first {
			return
		}
		l.queue, err = n.c.eng.Fabric().(*rdma.Fabric).NewQueue()
		for r := 0; r < n.c.size && err == nil; r++ {
			if r != n.c.rank {
				var at verbs.Endpoint
				at, err = l.queue.Endpoint(n.c.job(r))
				text, _ := at.MarshalText()
				copy(end(r, 0), text)
			}
		}
	})
	if err != nil || !first {
		return err
	}
	var rs []coll.Request
	for r := range n.c.size {
		if r != n.c.rank {
			rs = append(rs, n.Irecv(r, end(r, 1)), n.Isend(r, end(r, 0)))
		}
	}
	if err := n.Wait(rs...); err != nil {
		return err
	}
	n.c.eng.Do(func(*protocol.Core) {
		for r := 0; r < n.c.size && err == nil; r++ {
			if r != n.c.rank {
				var other verbs.Endpoint
				if err = other.UnmarshalText(bytes.TrimRight(end(r, 1), "\x00")); err == nil {
					err = l.queue.Connect(n.c.job(r), other)
				}
			}
		}
	})
	return err
}

// Post implements coll.Queuer.
func (n *net) Post(b []byte) coll.Request {
	return n.queued(b, -1, func(then func(error)) error { return n.lane.queue.Post(b, then) })
}

// Ship implements coll.Queuer.
func (n *net) Ship(to int, b []byte) coll.Request {
	return n.queued(b, n.c.job(to), func(then func(error)) error { return n.lane.queue.Send(n.c.job(to), b, then) })
}

// queued begins a message of the lane's queue, to a rank or, -1, from nobody knows whom.
func (n *net) queued(b []byte, job int, begin func(then func(error)) error) coll.Request {
	m := n.message()
	m.p.Dest, m.p.Buf = job, b
	n.c.eng.Do(func(*protocol.Core) {
		m.err = begin(func(err error) {
			m.p.Done = true
			if err != nil {
				m.p.Err = fmt.Errorf("%w: %w", ErrLost, err)
			}
		})
	})
	return m
}
