package collective

import (
	"slices"
	"sync"
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
	calls []*comparedCall
}

// push adds a call. The caller holds the communicator's lock, so that calls are queued in the
// order of their numbers.
func (q *callQueue) push(k *comparedCall) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = append(q.calls, k)
}

// remove removes a call, and reports whether others are left.
func (q *callQueue) remove(k *comparedCall) (more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = slices.DeleteFunc(q.calls, func(x *comparedCall) bool { return x == k })
	return len(q.calls) > 0
}

// front returns the call that may use the receive queue.
func (q *callQueue) front() *comparedCall {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls[0]
}
