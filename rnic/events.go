package rnic

import (
	"context"
	"sync"

	"github.com/softrnic/softrnic/verbs"
)

// maxQueuedEvents is how many errors, and how many other events, wait at most for
// a program that does not ask for them.
const maxQueuedEvents = 512

// eventQueue holds asynchronous events until someone asks for them. When too
// many wait, the oldest is lost and counted; errors and notices have separate
// room, so that a flood of notices costs no error. Both come out in the order
// they were raised.
type eventQueue struct {
	mu              sync.Mutex
	errors, notices slotRing[numberedEvent]
	raised          uint64
	lost            uint64
	closed          bool

	more chan struct{} // holds a token if an event may be waiting
	done chan struct{} // closed with the queue
}

type numberedEvent struct {
	number uint64
	event  verbs.AsyncEvent
}

func newEventQueue() *eventQueue {
	return &eventQueue{more: make(chan struct{}, 1), done: make(chan struct{})}
}

// push adds an event. It never blocks; after close it does nothing.
func (q *eventQueue) push(ev verbs.AsyncEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	ring := &q.notices
	if isError(ev.Type) {
		ring = &q.errors
	}
	if ring.n == maxQueuedEvents {
		ring.pop()
		q.lost++
	}
	q.raised++
	*ring.push(maxQueuedEvents) = numberedEvent{q.raised, ev}
	q.wakeOne()
}

// wakeOne lets one waiter look.
func (q *eventQueue) wakeOne() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// waitNext returns the oldest event. If there is none it waits for one, for the end
// of ctx or for close. An event that is there already is returned even if ctx
// has ended, so that an ended context makes get a poll.
func (q *eventQueue) waitNext(ctx context.Context) (verbs.AsyncEvent, error) {
	ctx = orBackground(ctx)
	closed := &verbs.OpError{Op: "get async event", Err: verbs.ErrClosed, Detail: "the device was closed"}
	for {
		if ev, ok := q.tryPop(); ok {
			return ev, nil
		}
		select {
		case <-q.more:
		case <-q.done:
			return verbs.AsyncEvent{}, closed
		case <-ctx.Done():
			select {
			case <-q.done:
				return verbs.AsyncEvent{}, closed
			default:
			}
			return verbs.AsyncEvent{}, ctx.Err()
		}
	}
}

func (q *eventQueue) tryPop() (verbs.AsyncEvent, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ring := &q.errors
	if e, n := q.errors.front(), q.notices.front(); e == nil || n != nil && n.number < e.number {
		ring = &q.notices
	}
	slot := ring.pop()
	if slot == nil {
		return verbs.AsyncEvent{}, false
	}
	ev := slot.event
	*slot = numberedEvent{} // do not keep the object alive
	if q.errors.n+q.notices.n > 0 {
		q.wakeOne()
	}
	return ev, true
}

// close drops what waits and ends every get, now and later. Closing twice is
// safe.
func (q *eventQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.errors, q.notices = slotRing[numberedEvent]{}, slotRing[numberedEvent]{}
	close(q.done)
}

// lostEvents is the number of events that nobody asked for in time.
func (q *eventQueue) lostEvents() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

// isError tells events that report a failure from notices.
func isError(t verbs.EventType) bool {
	switch t {
	case verbs.EventCQErr, verbs.EventQPFatal, verbs.EventQPReqErr, verbs.EventQPAccessErr, verbs.EventDeviceFatal, verbs.EventPortErr:
		return true
	}
	return false
}
