//go:build linux

package uverbs

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// The queueWaiters are the calls that wait for an event of a queue: Wait for the one that ReqNotify
// armed, and any number of PollWait, which arm the kernel's queue themselves.
type queueWaiters struct {
	counted eventCount // completion events

	mu      sync.Mutex
	armed   bool // ReqNotify was called since the last event
	only    bool // for solicited completions only
	pending bool // the armed event happened
	parked  []chan struct{}
	spare   []chan struct{}
}

// wakeAll makes every waiter check its condition again.
func (w *queueWaiters) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wake := range w.parked {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// parkWaiter returns a channel for wake-ups until unparkWaiter. Earlier ones are not delivered, so check the
// condition after it.
func (w *queueWaiters) parkWaiter() (wake chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.spare); n > 0 {
		wake, w.spare = w.spare[n-1], w.spare[:n-1]
	} else {
		wake = make(chan struct{}, 1)
	}
	w.parked = append(w.parked, wake)
	return wake
}

func (w *queueWaiters) unparkWaiter(wake chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.parked, wake)
	w.parked = slices.Delete(w.parked, i, i+1)
	select {
	case <-wake:
	default:
	}
	w.spare = append(w.spare, wake)
}

// takeArmed reports whether an event of the kernel satisfies ReqNotify, and disarms.
func (w *queueWaiters) takeArmed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	armed := w.armed
	w.armed, w.only = false, false
	return armed
}

// setArmed records a call of ReqNotify. Arming for any completion remains.
func (w *queueWaiters) setArmed(solicitedOnly bool) {
	w.mu.Lock()
	w.only = solicitedOnly && (w.only || !w.armed)
	w.armed = true
	w.mu.Unlock()
}

// isSolicitedOnly reports whether the queue is armed for solicited completions only.
func (w *queueWaiters) isSolicitedOnly() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.armed && w.only
}

// setPending records the event for Wait.
func (w *queueWaiters) setPending() {
	w.mu.Lock()
	w.pending = true
	w.mu.Unlock()
}

// takePending consumes the event, and reports whether there was one.
func (w *queueWaiters) takePending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	pending := w.pending
	w.pending = false
	return pending
}

// ReqNotify implements verbs.CQ.
func (c *completionQueue) ReqNotify(solicitedOnly bool) error {
	const op = "arm CQ"
	if err := c.checkOpen(c.dev, op, c); err != nil {
		return err
	}
	c.waiters.setArmed(solicitedOnly)
	if c.overrun.Load() {
		c.channel.raiseEvent(c)
		return nil
	}
	return opError(op, c.String(), c.armKernel(solicitedOnly))
}

// armKernel makes the kernel report the next completion. A queue that is armed for any completion
// remains so.
func (c *completionQueue) armKernel(solicitedOnly bool) error {
	body := notifyCQ{handle: c.handle}
	if solicitedOnly {
		body.solicited = 1
	}
	c.ringMu.Lock() // guards the buffer
	defer c.ringMu.Unlock()
	return c.dev.file.sendCommand(encodeCommand(c.command[:0], cmdReqNotifyCQ, bytesOf(&body), nil))
}

// Disarm implements verbs.CQ. The kernel's queue stays armed; its event is ignored.
func (c *completionQueue) Disarm() { c.waiters.takeArmed() }

// Wait implements verbs.CQ.
func (c *completionQueue) Wait(ctx context.Context) error {
	const op = "wait for CQ"
	if c.channel != c.dev.own {
		return invalidError(op, c.String(), "its events are reported by its channel; wait there, or for completions with PollWait")
	}
	return c.waitUntil(ctx, op, func() (bool, error) { return c.waiters.takePending(), nil })
}

// PollWait implements verbs.CQ.
func (c *completionQueue) PollWait(ctx context.Context, wc []verbs.WC) (int, error) {
	if n, err := c.Poll(wc); n > 0 || err != nil || len(wc) == 0 {
		return n, err
	}
	n := 0
	err := c.waitUntil(ctx, "wait for CQ", func() (done bool, err error) {
		if n, err = c.Poll(wc); n > 0 || err != nil {
			return true, err
		}
		if c.waiters.isSolicitedOnly() {
			// The kernel's queue has one arming: for any completion it would end the Wait of a
			// solicited one.
			time.AfterFunc(pollInterval, c.waiters.wakeAll)
			return false, nil
		}
		if err = c.armKernel(false); err != nil {
			return false, opError("arm CQ", c.String(), err)
		}
		n, err = c.Poll(wc) // a completion before the kernel was armed raises no event
		return n > 0, err
	})
	return n, err
}

// pollInterval is the interval of polls in PollWait while the queue is armed for solicited completions.
const pollInterval = 100 * time.Microsecond

// waitUntil parks the caller until check returns true or an error, ctx ends, or the queue is closed.
func (c *completionQueue) waitUntil(ctx context.Context, op string, check func() (bool, error)) error {
	if ctx == nil {
		ctx = context.Background()
	}
	wake := c.waiters.parkWaiter()
	defer c.waiters.unparkWaiter(wake)
	for {
		if err := c.checkOpen(c.dev, op, c); err != nil {
			return err
		}
		done, err := check()
		if done || err != nil {
			return err
		}
		select {
		case <-wake:
		case <-c.dev.closed:
			return closedError(op, c.String())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// handleEvent records an event of the kernel, of which there is one per arming.
func (c *completionQueue) handleEvent() {
	if c.waiters.takeArmed() {
		c.channel.raiseEvent(c)
	}
	c.waiters.wakeAll()
	c.waiters.counted.addHandled() // last: Close waits for it
}
