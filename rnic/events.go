package rnic

import (
	"context"
	"sync"

	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/verbs"
)

// maxQueuedEvents bounds the queued errors, and separately the queued notices.
const maxQueuedEvents = 512

// An eventQueue queues asynchronous events for AsyncEvent. When it is full
// the oldest event is dropped and counted. Errors and notices have separate
// limits, so that many notices displace no error; both are delivered in the
// order they were raised.
type eventQueue struct {
	mu              sync.Mutex
	errors, notices fifo.Queue[numberedEvent]
	raised          uint64
	lost            uint64
	closed          bool

	more chan struct{} // holds a token while an event may be queued
	done chan struct{} // closed with the queue
}

type numberedEvent struct {
	number uint64
	event  verbs.AsyncEvent
}

func newEventQueue() *eventQueue {
	return &eventQueue{more: make(chan struct{}, 1), done: make(chan struct{})}
}

// push queues ev. It never blocks, and does nothing after close.
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
	if ring.Len() == maxQueuedEvents {
		ring.Pop()
		q.lost++
	}
	q.raised++
	ring.Push(numberedEvent{q.raised, ev})
	q.wakeOne()
}

// wakeOne wakes one waiter.
func (q *eventQueue) wakeOne() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// waitNext returns the oldest event. If none is queued it waits for one, for
// the end of ctx, or for close. A queued event is returned even if ctx has
// ended, so that an ended context makes the call a poll.
func (q *eventQueue) waitNext(ctx context.Context) (verbs.AsyncEvent, error) {
	ctx = orBackground(ctx)
	closed := &verbs.OpError{Op: "get async event", Err: verbs.ErrClosed, Detail: "the device was closed"}
	for {
		if ev, ok := q.tryPop(); ok {
			return ev, nil
		}
		vtime.WaitUntil(func() bool { return len(q.more) > 0 || vtime.IsClosed(q.done) || ctx.Err() != nil })
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
	if n := &q.notices; n.Len() > 0 && (ring.Len() == 0 || n.Front().number < ring.Front().number) {
		ring = n
	}
	if ring.Len() == 0 {
		return verbs.AsyncEvent{}, false
	}
	ev := ring.Pop().event
	if q.errors.Len()+q.notices.Len() > 0 {
		q.wakeOne()
	}
	return ev, true
}

// close drops the queued events and makes all current and later calls of
// waitNext return ErrClosed. It is idempotent.
func (q *eventQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.errors, q.notices = fifo.Queue[numberedEvent]{}, fifo.Queue[numberedEvent]{}
	close(q.done)
}

// lostEvents returns the number of dropped events.
func (q *eventQueue) lostEvents() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

// isError reports whether events of type t report a failure; others are
// notices.
func isError(t verbs.EventType) bool {
	switch t {
	case verbs.EventCQErr, verbs.EventQPFatal, verbs.EventQPReqErr, verbs.EventQPAccessErr, verbs.EventDeviceFatal, verbs.EventPortErr:
		return true
	}
	return false
}

// An eventList is a list of queues with an event, guarded by the lock of their
// channel. A queue is in at most one list.
type eventList struct {
	oldest, newest *completionQueue
}

// An eventNode links a queue into a list, guarded by the lock of its channel.
type eventNode struct {
	list         *eventList // or nil
	older, newer *completionQueue
}

// push appends c, which must be in no list.
func (l *eventList) push(c *completionQueue) {
	c.node = eventNode{list: l, older: l.newest}
	if l.newest != nil {
		l.newest.node.newer = c
	} else {
		l.oldest = c
	}
	l.newest = c
}

// pop removes and returns the oldest queue, or nil.
func (l *eventList) pop() *completionQueue {
	c := l.oldest
	if c != nil {
		c.removeFromList()
	}
	return c
}

// removeFromList removes c from the list that it is in, if any.
func (c *completionQueue) removeFromList() {
	p, l := c.node, c.node.list
	if l == nil {
		return
	}
	if p.older != nil {
		p.older.node.newer = p.newer
	} else {
		l.oldest = p.newer
	}
	if p.newer != nil {
		p.newer.node.older = p.older
	} else {
		l.newest = p.older
	}
	c.node = eventNode{}
}
