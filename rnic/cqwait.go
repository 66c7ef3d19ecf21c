package rnic

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// The cqWaiters are the goroutines that wait for completions of a queue, and the event that it
// is armed for. The lock of the queue guards the fields that are not atomic.
type cqWaiters struct {
	armed         armState
	pushedAtCheck uint64                 // pushed at the last check of checkWaiters
	blockedCalls  atomic.Int32           // calls of Wait and PollWait in progress
	hint          atomic.Pointer[string] // why nothing could complete during a wait

	eventPending  atomic.Bool     // the armed event happened and was not consumed by a Wait
	pollWaiters   atomic.Int32    // waits of PollWait in progress, which every completion wakes
	parkedWaiters []chan struct{} // parked waiters
	spareChans    []chan struct{} // free list for parkedWaiters
	parkedCount   atomic.Int32    // len(parkedWaiters)
}

// An armState records the last ReqNotify.
type armState uint8

const (
	disarmed armState = iota
	armedSolicited
	armedAny
)

// wakeWaiters makes every waiter on the queue check again: parked ones, and a
// leader asleep in a socket while the completion came another way.
func (c *completionQueue) wakeWaiters() {
	for _, s := range c.dev.shards {
		if s.leader.Load() == c && s.token.isAsleep() {
			s.socket.Wake()
		}
	}
	if c.parkedCount.Load() == 0 {
		return
	}
	c.dev.wakeups.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, wake := range c.parkedWaiters {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// parkWaiter returns a channel for wake-ups, until unparkWaiter. Earlier
// wake-ups are not delivered: check the queue after parking.
func (c *completionQueue) parkWaiter() (wake chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.spareChans); n > 0 {
		wake, c.spareChans = c.spareChans[n-1], c.spareChans[:n-1]
	} else {
		wake = make(chan struct{}, 1)
	}
	c.parkedWaiters = append(c.parkedWaiters, wake)
	c.parkedCount.Store(int32(len(c.parkedWaiters)))
	return wake
}

func (c *completionQueue) unparkWaiter(wake chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.parkedWaiters, wake)
	c.parkedWaiters = slices.Delete(c.parkedWaiters, i, i+1)
	c.parkedCount.Store(int32(len(c.parkedWaiters)))
	select {
	case <-wake:
	default:
	}
	c.spareChans = append(c.spareChans, wake)
}

// ReqNotify implements verbs.CQ. On an overrun queue the event happens at once.
func (c *completionQueue) ReqNotify(solicitedOnly bool) error {
	const op = "arm CQ"
	if err := c.dev.checkUsable(op); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &verbs.OpError{Op: op, Object: c.String(), Err: verbs.ErrClosed}
	}
	if c.overrun && c.channel != nil {
		c.channel.enqueueEvent(c, true)
		return nil
	}
	want := armedAny
	if solicitedOnly {
		want = armedSolicited
	}
	c.armed = max(c.armed, want)
	if c.channel != nil {
		for _, s := range c.dev.shards {
			s.requestService() // the caller is going to wait, not to poll
		}
	}
	return nil
}

// Disarm implements verbs.CQ.
func (c *completionQueue) Disarm() {
	c.mu.Lock()
	c.armed = disarmed
	c.mu.Unlock()
	if s := c.shard.Load(); s != nil {
		s.activity.arms.Add(1)
	}
}

// Wait implements verbs.CQ. The first waiter reads the socket itself while it
// waits, so that an event costs one wake-up.
func (c *completionQueue) Wait(ctx context.Context) error {
	if c.channel != nil {
		const op = "wait for CQ"
		if err := c.checkUsable(op); err != nil {
			return err
		}
		return &verbs.OpError{Op: op, Object: c.String(), Err: verbs.ErrInvalid,
			Detail: fmt.Sprintf("its events are reported by %v; wait there, or for completions with PollWait", c.channel)}
	}
	w := waiter{ctx: orBackground(ctx), cq: c}
	return w.wait()
}

// PollWait implements verbs.CQ. Any number of goroutines may share a queue:
// none sleeps while a completion is queued. It neither arms the queue nor
// consumes the event that ReqNotify armed.
func (c *completionQueue) PollWait(ctx context.Context, wc []verbs.WC) (int, error) {
	for {
		if n, err := c.Poll(wc); n > 0 || err != nil || len(wc) == 0 {
			return n, err
		}
		w := waiter{ctx: orBackground(ctx), cq: c, completion: true}
		if err := w.wait(); err != nil {
			return 0, err
		}
	}
}

// WaitUntil blocks until ready reports true, a completion is queued, ctx ends or the queue fails. It
// returns nil in the first two cases. ready is called after each batch of packets and before the
// goroutine sleeps, so it may report a word that a peer has written into memory. It must be fast and must
// not call the device. internal/progress calls it.
func (c *completionQueue) WaitUntil(ctx context.Context, ready func() bool) error {
	w := waiter{ctx: orBackground(ctx), cq: c, completion: true, ready: ready}
	return w.wait()
}

// orBackground returns ctx, or a context that never ends if it is nil.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// raiseEvent satisfies one Wait.
func (c *completionQueue) raiseEvent() {
	c.eventPending.Store(true)
	c.wakeWaiters()
}
