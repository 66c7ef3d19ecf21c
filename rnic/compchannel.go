package rnic

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/verbs"
)

// A completionChannel is a completion channel: the queues whose armed event has
// happened, listed for Wait, or for the handler while the service polls. It has
// no goroutine, and its waiters never read a socket: whichever goroutine adds
// the completion lists the queue.
type completionChannel struct {
	dev *Device
	num uint32

	notify func(verbs.CQ) // called for each event instead of listing the queue, or nil; see rnichook.NotifyChannel

	more chan struct{} // holds a token while a queue may be listed
	done chan struct{} // closed with the channel

	handler      atomic.Pointer[func(verbs.CQ) bool] // called by the service, or nil; see handler.go
	servicePolls atomic.Int32                        // polls of the service in progress, whose events go to the handler

	mu      sync.Mutex // taken after CQ.mu
	waiting eventList  // for Wait
	offered eventList  // for the handler, when the poll of the service ends
	users   int        // number of completion queues
	closed  bool
}

// CreateCompChannel implements verbs.Device.
func (d *Device) CreateCompChannel() (verbs.CompChannel, error) {
	if err := d.checkUsable("create completion channel"); err != nil {
		return nil, err
	}
	return &completionChannel{
		dev: d, num: d.lastChannel.Add(1),
		more: make(chan struct{}, 1), done: make(chan struct{}),
	}, nil
}

// CreateCQ implements verbs.CompChannel.
func (ch *completionChannel) CreateCQ(depth int) (verbs.CQ, error) { return ch.dev.createCQ(depth, ch) }

// Wait implements verbs.CompChannel. The waiter parks: the socket is left to
// pollers, waiters on queues, and the service. Any number of goroutines may
// share a channel.
func (ch *completionChannel) Wait(ctx context.Context) (verbs.CQ, error) {
	ctx = orBackground(ctx)
	for ended := false; ; {
		if c := ch.popEvent(); c != nil {
			return c, c.overrunError()
		}
		if ended {
			return nil, ch.checkUsable("wait for completion channel")
		}
		if vtime.OnSimulatedHost() {
			ch.waitSimulated(ctx)
		}
		select {
		case <-ch.more:
		case <-ch.done:
			ended = true
		case <-ch.dev.ended: // check once more: queues with flushed completions are listed
			ended = true
		case <-ctx.Done():
			if err := ch.checkUsable("wait for completion channel"); err != nil {
				return nil, err
			}
			return nil, ctx.Err()
		}
	}
}

// waitSimulated returns when the select of Wait does not block.
func (ch *completionChannel) waitSimulated(ctx context.Context) {
	vtime.WaitUntil(func() bool {
		return len(ch.more) > 0 || vtime.IsClosed(ch.done) || vtime.IsClosed(ch.dev.ended) || ctx.Err() != nil
	})
}

// String returns the name of the channel for errors.
func (ch *completionChannel) String() string { return fmt.Sprintf("completion channel %d", ch.num) }

// checkUsable returns the error of op if the channel is closed or its device
// unusable.
func (ch *completionChannel) checkUsable(op string) error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed {
		return &verbs.OpError{Op: op, Object: ch.String(), Err: verbs.ErrClosed}
	}
	return ch.dev.checkUsable(op)
}

// enqueueEvent lists c, unless it is listed already: for the handler while the
// service polls, if offer is set, and for Wait otherwise. c.mu is held.
func (ch *completionChannel) enqueueEvent(c *completionQueue, offer bool) {
	if ch.notify != nil {
		ch.notify(c)
		return
	}
	list := &ch.waiting
	ch.mu.Lock()
	if offer && ch.servicePolls.Load() > 0 {
		list = &ch.offered
	}
	if c.node.list == nil {
		list.push(c)
	}
	ch.mu.Unlock()
	if list == &ch.waiting {
		ch.wakeOne()
	}
}

// wakeOne wakes one waiter.
func (ch *completionChannel) wakeOne() {
	ch.dev.wakeups.Add(1)
	select {
	case ch.more <- struct{}{}:
	default:
	}
}

// popEvent removes and returns the queue with the oldest event, or nil.
func (ch *completionChannel) popEvent() *completionQueue {
	ch.mu.Lock()
	c := ch.waiting.pop()
	left := ch.waiting.oldest != nil
	ch.mu.Unlock()
	if left {
		ch.wakeOne()
	}
	return c
}

// addUser counts a completion queue of the channel.
func (ch *completionChannel) addUser(op string) error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed {
		return &verbs.OpError{Op: op, Object: ch.String(), Err: verbs.ErrClosed}
	}
	ch.users++
	return nil
}

// removeUser undoes addUser. With keep, a pending event stays: the device has
// closed, and flushed completions can still be polled. c.mu is held.
func (ch *completionChannel) removeUser(c *completionQueue, keep bool) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.users--
	if !keep {
		c.removeFromList()
	}
}

// Close implements verbs.CompChannel. It is idempotent.
func (ch *completionChannel) Close() error {
	if err := ch.close(); err != nil {
		return err
	}
	if ch.handler.Load() != nil {
		ch.dev.updateHandledChannels(ch, false) // without ch.mu, which is taken after Device.mu
	}
	return nil
}

func (ch *completionChannel) close() error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed {
		return nil
	}
	if ch.users > 0 {
		return &verbs.OpError{Op: "close completion channel", Object: ch.String(), Err: verbs.ErrBusy,
			Detail: fmt.Sprintf("%d completion queues use the channel; close those first", ch.users)}
	}
	for ch.waiting.pop() != nil { // only of a closed device; offered is empty without users
	}
	ch.closed = true
	close(ch.done)
	return nil
}
