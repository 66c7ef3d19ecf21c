package collective

import (
	"bytes"
	"context"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// CanQueue implements coll.SharedQueueNet. Nonblocking calls get their channel when they reach the front
// of the queue.
func (n *callNet) CanQueue() bool {
	_, ok := n.comm.Engine.Fabric().(*rdma.Fabric)
	return ok && (n.op.isQueued() || n.CanWrite())
}

// endpointSize is the size in bytes of an endpoint as text.
const endpointSize = 256

// OpenQueue implements coll.SharedQueueNet. In the first call the ranks exchange the endpoints of their
// connections.
func (n *callNet) OpenQueue(send, recv []byte) error {
	if n.channel == nil {
		if err := n.waitTurn(); err != nil {
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
			_, _, err = l.sendRegistration.register(n.comm.Comm, send)
		}
		if err == nil {
			_, _, err = l.recvRegistration.register(n.comm.Comm, recv)
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

// queueTurn is the condition that a call is at the front of the queue.
type queueTurn struct{ net *callNet }

// Ready implements engine.Waitable.
func (t queueTurn) Ready() bool { return t.net.comm.callQueue.front() == &t.net.comparedCall }

// waitTurn waits until the call is at the front of the queue, and locks the RDMA channel that
// nonblocking calls share.
func (n *callNet) waitTurn() error {
	if err := n.comm.Engine.Wait(context.Background(), queueTurn{n}); err != nil {
		return err
	}
	n.channel = n.comm.channels.getOrCreate(&n.comm.channels.nonblocking, n.comm.Comm, &n.comm.job.channels)
	n.channel.callMu.Lock()
	return nil
}
