package rnic

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/verbs"
)

// A completionQueue is a completion queue. The engine pushes completions with its shard's
// lock held; any goroutine polls.
type completionQueue struct {
	dev     *Device
	num     uint32
	byEvent atomic.Bool           // the last completions came with an event of the channel, and no poll was empty since
	channel *completionChannel    // receives the armed events; nil: Wait does
	shard   atomic.Pointer[shard] // shard whose socket a waiter reads: that of the first queue pair

	ready          atomic.Int32 // queued completions, so that Poll sees an empty queue without the lock
	failed         atomic.Bool  // closed, overrun, or the link failed
	managementOnly atomic.Bool  // used by the GSI queue pair only: its waiters never lead

	mu sync.Mutex
	completionRing
	closed bool
	users  int // queue pairs
	node   eventNode

	cqWaiters
}

// A completionRing has the queued completions. The lock of the queue guards it.
type completionRing struct {
	queued  fifo.Slots[verbs.WC]
	depth   int
	pushed  uint64 // completions ever pushed
	overrun bool
	timed   bool // completions have a time
}

// CreateCQ implements verbs.Device. Memory grows with the number of queued
// completions, up to depth.
func (d *Device) CreateCQ(depth int) (verbs.CQ, error) { return d.createCQ(depth, nil) }

func (d *Device) createCQ(depth int, ch *completionChannel) (verbs.CQ, error) {
	const op = "create CQ"
	if depth < 1 || depth > maxCQE {
		return nil, &verbs.OpError{Op: op, Err: verbs.ErrLimit, Detail: fmt.Sprintf("depth %d: want 1 to %d", depth, maxCQE)}
	}
	if err := d.checkUsable(op); err != nil {
		return nil, err
	}
	if err := d.quota.reserve(kindCQ, op); err != nil {
		return nil, err
	}
	if ch != nil {
		if err := ch.addUser(op); err != nil {
			d.quota.release(kindCQ)
			return nil, err
		}
	}
	c := &completionQueue{dev: d, num: d.lastCQ.Add(1), channel: ch, completionRing: completionRing{depth: depth}}
	c.shard.Store(d.shards[0])
	d.trackCQ(c)
	return c, nil
}

// pushCompletion queues a completion, or returns false if the queue overran and
// the completion is lost. The lock of a shard is held.
func (c *completionQueue) pushCompletion(wc *verbs.WC, solicited bool) bool {
	c.mu.Lock()
	slot := (*verbs.WC)(nil)
	if !c.overrun {
		slot = c.queued.Push(c.depth)
	}
	if slot == nil {
		first := !c.overrun
		c.overrun = true
		c.failed.Store(true)
		if c.channel != nil && c.armed != disarmed {
			c.armed = disarmed
			c.channel.enqueueEvent(c, true)
		}
		c.mu.Unlock()
		if first {
			c.dev.raiseEvent(verbs.AsyncEvent{Type: verbs.EventCQErr, CQ: c, Failure: &verbs.Failure{
				Event: fmt.Sprintf("a completion queue of %d overran", c.depth),
				Cause: "completions are lost; close the queue with its queue pairs, and create one with the depth of all queues that use it together, or poll more often",
			}})
			c.wakeWaiters()
		}
		return false
	}
	*slot = *wc
	if c.timed {
		slot.Time = c.dev.clock()
	}
	c.pushed++
	c.ready.Store(int32(c.queued.Len()))
	event := c.armed == armedAny || c.armed == armedSolicited && solicited
	if event {
		c.armed = disarmed
		if c.channel == nil {
			c.eventPending.Store(true)
		} else {
			c.byEvent.Store(true)
			c.channel.enqueueEvent(c, true)
			event = false // the channel wakes its waiter
		}
	}
	c.mu.Unlock()
	if event || c.pollWaiters.Load() > 0 {
		c.wakeWaiters()
	}
	return true
}

// popCompletions moves completions to wc and returns their number.
func (c *completionQueue) popCompletions(wc []verbs.WC) int {
	c.mu.Lock()
	n := min(len(wc), c.queued.Len())
	for i := range n {
		slot := c.queued.Pop()
		wc[i], slot.Failure = *slot, nil
	}
	c.ready.Store(int32(c.queued.Len()))
	c.mu.Unlock()
	return n
}

// purgeQP drops the completions of a queue pair and keeps the order of the
// others. Events that they have raised stay: a waiter may find nothing.
func (c *completionQueue) purgeQP(qpn uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, n := 0, c.queued.Len()
	for i := range n {
		if wc := c.queued.At(i); wc.QPN != qpn {
			if i != kept {
				*c.queued.At(kept) = *wc
			}
			kept++
		}
	}
	for i := kept; i < n; i++ {
		c.queued.At(i).Failure = nil
	}
	c.queued.Truncate(kept)
	c.ready.Store(int32(kept))
}

// Poll implements verbs.CQ. On an empty queue it reads the socket once.
func (c *completionQueue) Poll(wc []verbs.WC) (int, error) {
	if c.ready.Load() == 0 {
		if len(wc) > 0 {
			c.dev.pollShard(c.shard.Load(), caller{cq: c})
		}
		if c.ready.Load() == 0 {
			if c.byEvent.Load() {
				c.byEvent.Store(false)
			}
			return 0, c.checkUsable("poll CQ")
		}
	}
	return c.popCompletions(wc), nil
}

// checkUsable returns the error that op returns for an empty queue, or nil.
func (c *completionQueue) checkUsable(op string) error {
	if !c.dev.unusable.Load() && !c.failed.Load() {
		return nil
	}
	if err := c.dev.checkUsable(op); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return &verbs.OpError{Op: op, Object: c.String(), Err: verbs.ErrClosed}
	case c.overrun:
		return &verbs.OpError{Op: op, Object: c.String(), Err: verbs.ErrCQOverrun}
	}
	return nil
}

// overrunError returns the error delivered with the event of an overrun queue,
// or nil.
func (c *completionQueue) overrunError() error {
	if !c.failed.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.overrun {
		return nil
	}
	return &verbs.OpError{Op: "wait for completion channel", Object: c.String(), Err: verbs.ErrCQOverrun}
}

// String returns the name of the queue for errors.
func (c *completionQueue) String() string { return fmt.Sprintf("CQ %d", c.num) }

// Len implements verbs.CQ.
func (c *completionQueue) Len() int { return int(c.ready.Load()) }

// Resize implements verbs.CQ. It does not repair an overrun queue.
func (c *completionQueue) Resize(depth int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return &verbs.OpError{Op: "resize CQ", Object: c.String(), Err: verbs.ErrClosed}
	case c.overrun:
		return &verbs.OpError{Op: "resize CQ", Object: c.String(), Err: verbs.ErrCQOverrun}
	case depth < 1 || depth > maxCQE:
		return &verbs.OpError{Op: "resize CQ", Err: verbs.ErrLimit, Detail: fmt.Sprintf("depth %d: want 1 to %d", depth, maxCQE)}
	case depth < c.queued.Len():
		return &verbs.OpError{Op: "resize CQ", Err: verbs.ErrInvalid, Detail: fmt.Sprintf("%d completions are waiting; poll them first", c.queued.Len())}
	}
	c.depth = depth
	c.queued.Resize(min(max(c.queued.Len(), 16), depth))
	return nil
}

// RecordTimes implements verbs.CQ.
func (c *completionQueue) RecordTimes(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timed = on
}

// Depth implements verbs.CQ.
func (c *completionQueue) Depth() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.depth
}

// addUser counts a queue pair that reports to the queue. Waiters on a queue of
// management only never lead: such a waiter sleeps nearly always, and as the
// leader it would be woken by every packet.
func (c *completionQueue) addUser(s *shard, management bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return verbs.ErrClosed
	case c.overrun:
		return verbs.ErrCQOverrun
	}
	if c.users == 0 {
		c.shard.Store(s)
		c.managementOnly.Store(management)
	} else if !management {
		c.managementOnly.Store(false)
	}
	c.users++
	return nil
}

func (c *completionQueue) removeUser() {
	c.mu.Lock()
	c.users--
	c.mu.Unlock()
}

// Close implements verbs.CQ. It is idempotent.
func (c *completionQueue) Close() error { return c.close(false) }

// close closes the queue and wakes its waiters. Without force it returns
// ErrBusy while queue pairs report to it.
func (c *completionQueue) close(force bool) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	if c.users > 0 && !force {
		defer c.mu.Unlock()
		return &verbs.OpError{Op: "close CQ", Object: c.String(), Err: verbs.ErrBusy,
			Detail: fmt.Sprintf("%d queues of queue pairs use it; close those first", c.users)}
	}
	c.closed = true
	c.failed.Store(true)
	if c.channel != nil {
		c.channel.removeUser(c, force)
	}
	c.mu.Unlock()
	c.dev.untrackCQ(c)
	c.dev.quota.release(kindCQ)
	c.wakeWaiters()
	return nil
}
