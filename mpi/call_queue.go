package mpi

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
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
