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

// callQueue is the alltoalls of a communicator that are under way in the background, as
// they were made. Those that use its queue of receives do so one after the other: a
// message takes the first receive, whose call ever it is of.
//
// All ranks make the calls of a communicator in one order, and who makes one waits
// for nobody. So a call whose turn has come at one rank comes to its turn at all, and
// since each communicator has a line and a queue of its own it does not matter how
// calls of several follow one another.
type callQueue struct {
	mu    sync.Mutex // the engine's lock may be held
	calls []*call
}

// push is the beginning of a call. The caller has the communicator's lock, so that
// calls are in line as they are numbered.
func (l *callQueue) push(k *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, k)
}

// remove is the end of a call, and the turn of the next.
func (l *callQueue) remove(k *call) {
	l.mu.Lock()
	l.calls = slices.DeleteFunc(l.calls, func(x *call) bool { return x == k })
	more := len(l.calls) > 0
	l.mu.Unlock()
	if more {
		k.comm.eng.Do(func(*protocol.Core) {}) // wakes it
	}
}

// front is the call whose turn it is.
func (l *callQueue) front() *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[0]
}

// queueTurn is what a call in the background waits for before it uses the queue.
type queueTurn struct{ *call }

// Ready implements engine.Waitable.
func (t queueTurn) Ready() bool { return t.comm.callQueue.front() == t.call }

// waitTurn waits for the turn of a call in the background, and takes the lane that these
// calls have in common.
func (k *call) waitTurn() error {
	if err := k.comm.eng.Wait(context.Background(), queueTurn{k}); err != nil {
		return err
	}
	k.net.channel = k.comm.channels.getOrCreate(&k.comm.channels.nonblocking, k.comm)
	k.net.channel.callMu.Lock()
	return nil
}

// describeWait implements describer: until the call before has ended nothing is known of
// whom this one will wait for, but that it is somebody else.
func (t queueTurn) describeWait() deadlock.Call {
	at, c := t.collectivePosition(), t.comm
	d := deadlock.Call{What: at.String(), Comm: c.Name(), Collective: &at, Aside: t.isUnattended(), Any: true,
		Why: fmt.Sprintf("after call #%d", uint32(c.callQueue.front().net.tag)&maxSeq)}
	all, _ := c.sourceRanks(match.Envelope{Source: match.Any})
	for _, rank := range all {
		if rank != c.eng.Rank() {
			d.For = append(d.For, rank)
		}
	}
	return d
}
