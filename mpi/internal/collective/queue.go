package collective

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// callQueue orders the nonblocking alltoalls of a communicator. They use the shared receive
// queue one after the other, because a message takes the first receive of the queue, regardless
// of the call that posted it.
//
// All ranks start the calls of a communicator in one order, and starting one does not block. So
// the call at the front at one rank comes to the front at all ranks. Each communicator has a
// callQueue and a receive queue of its own, so the order of calls on different communicators
// does not matter.
type callQueue struct {
	mu    sync.Mutex // may be acquired with the engine's lock held
	calls []*call
}

// push adds a call. The caller holds the communicator's lock, so that calls are queued in the
// order of their numbers.
func (q *callQueue) push(k *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = append(q.calls, k)
}

// remove removes a call, and wakes the next one.
func (q *callQueue) remove(k *call) {
	q.mu.Lock()
	q.calls = slices.DeleteFunc(q.calls, func(x *call) bool { return x == k })
	more := len(q.calls) > 0
	q.mu.Unlock()
	if more {
		k.comm.Engine.Do(func(*protocol.Core) {}) // wakes the next call
	}
}

// front returns the call that may use the receive queue.
func (q *callQueue) front() *call {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls[0]
}

// queueTurn is the condition that a call is at the front of the queue.
type queueTurn struct{ *call }

// Ready implements engine.Waitable.
func (t queueTurn) Ready() bool { return t.comm.callQueue.front() == t.call }

// waitTurn waits until the call is at the front of the queue, and locks the RDMA channel that
// nonblocking calls share.
func (k *call) waitTurn() error {
	if err := k.comm.Engine.Wait(context.Background(), queueTurn{k}); err != nil {
		return err
	}
	k.net.channel = k.comm.channels.getOrCreate(&k.comm.channels.nonblocking, k.comm)
	k.net.channel.callMu.Lock()
	return nil
}

// DescribeWait implements deadlock.Describer. Until the call before has completed, the ranks that
// this one will wait for are not known, except that they are other ranks.
func (t queueTurn) DescribeWait() deadlock.Call {
	at, c := t.collectivePosition(), t.comm
	d := deadlock.Call{What: at.String(), Comm: c.Name(), Collective: &at, Aside: t.isUnattended(), Any: true,
		Why: fmt.Sprintf("after call #%d", uint32(c.callQueue.front().net.tag)&maxSeq)}
	all, _ := c.SourceRanks(match.Envelope{Source: match.Any})
	for _, rank := range all {
		if rank != c.Engine.Rank() {
			d.For = append(d.For, rank)
		}
	}
	return d
}

// CanQueue implements coll.SharedQueueNet. Nonblocking calls get their channel when they reach the front
// of the queue.
func (n *callNet) CanQueue() bool {
	_, ok := n.comm.Engine.Fabric().(*rdma.Fabric)
	return ok && (n.call.isQueued() || n.CanWrite())
}

// endpointSize is the size in bytes of an endpoint as text.
const endpointSize = 256

// OpenQueue implements coll.SharedQueueNet. In the first call the ranks exchange the endpoints of their
// connections.
func (n *callNet) OpenQueue(send, recv []byte) error {
	if n.channel == nil {
		if err := n.call.waitTurn(); err != nil {
			return err
		}
	}
	l := n.channel
	var err error
	ends := make([]byte, 2*n.comm.Size*endpointSize)
	end := func(rank, way int) []byte { return ends[(2*rank+way)*endpointSize:][:endpointSize] }
	first := l.queue == nil
	n.comm.Engine.Do(func(*protocol.Core) {
		if err = l.broken; err == nil {
			_, _, err = l.sendRegistration.register(n.comm, send)
		}
		if err == nil {
			_, _, err = l.recvRegistration.register(n.comm, recv)
		}
		if err != nil || !first {
			return
		}
		l.queue, err = n.comm.Engine.Fabric().(*rdma.Fabric).NewQueue()
		for r := 0; r < n.comm.Size && err == nil; r++ {
			if r != n.comm.Rank {
				var at verbs.Endpoint
				at, err = l.queue.Endpoint(n.comm.WorldRank(r))
				text, _ := at.MarshalText()
				copy(end(r, 0), text)
			}
		}
	})
	if err != nil || !first {
		return err
	}
	var rs []coll.Request
	for r := range n.comm.Size {
		if r != n.comm.Rank {
			rs = append(rs, n.Irecv(r, end(r, 1)), n.Isend(r, end(r, 0)))
		}
	}
	if err := n.Wait(rs...); err != nil {
		return err
	}
	n.comm.Engine.Do(func(*protocol.Core) {
		for r := 0; r < n.comm.Size && err == nil; r++ {
			if r != n.comm.Rank {
				var other verbs.Endpoint
				if err = other.UnmarshalText(bytes.TrimRight(end(r, 1), "\x00")); err == nil {
					err = l.queue.Connect(n.comm.WorldRank(r), other)
				}
			}
		}
	})
	return err
}

// PostShared implements coll.SharedQueueNet.
func (n *callNet) PostShared(b []byte) coll.Request {
	return n.startQueued(b, -1, func(then func(error)) error { return n.channel.queue.Post(b, then) })
}

// SendShared implements coll.SharedQueueNet.
func (n *callNet) SendShared(to int, b []byte) coll.Request {
	return n.startQueued(b, n.comm.WorldRank(to), func(then func(error)) error { return n.channel.queue.Send(n.comm.WorldRank(to), b, then) })
}

// startQueued starts an operation of the channel's queue. job is the destination rank, or -1
// for a receive from any rank.
func (n *callNet) startQueued(b []byte, job int, begin func(then func(error)) error) coll.Request {
	m := n.newMessage()
	m.p.Dest, m.p.Buf = job, b
	n.comm.Engine.Do(func(*protocol.Core) {
		m.err = begin(func(err error) {
			m.p.Done = true
			if err != nil {
				m.p.Err = fmt.Errorf("%w: %w", protocol.ErrLost, err)
			}
		})
	})
	return m
}
