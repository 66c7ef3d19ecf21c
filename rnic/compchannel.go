package rnic

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// CompChannel is a completion channel: the queues whose armed event came and was not
// taken, listed for who waits, or for the handler while the service looks. It has no goroutine, and who waits on it never reads a
// socket: the engine lists a queue as it adds the completion, whoever runs it.
type CompChannel struct {
	dev *Device
	num uint32

	more chan struct{} // holds a token if a queue may be listed
	done chan struct{} // closed with the channel

	handler      atomic.Pointer[func(verbs.CQ) bool] // that the service calls, or nil; see handler.go
	servicePolls atomic.Int32                        // looks under way whose events are handed to it

	mu      sync.Mutex // taken after that of a queue
	waiting eventList  // for Wait
	offered eventList  // to the handler, until the look of the service ends
	users   int        // completion queues
	closed  bool
}

// CreateCompChannel implements verbs.Device.
func (d *Device) CreateCompChannel() (verbs.CompChannel, error) {
	if err := d.checkUsable("create completion channel"); err != nil {
		return nil, err
	}
	return &CompChannel{
		dev: d, num: d.lastChannel.Add(1),
		more: make(chan struct{}, 1), done: make(chan struct{}),
	}, nil
}

// CreateCQ implements verbs.CompChannel.
func (ch *CompChannel) CreateCQ(depth int) (verbs.CQ, error) { return ch.dev.createCQ(depth, ch) }

// Wait implements verbs.CompChannel. The waiter is parked: packets are left to
// pollers, to those who wait on queues, and to the service. Any number of
// goroutines may share a channel.
func (ch *CompChannel) Wait(ctx context.Context) (verbs.CQ, error) {
	ctx = orBackground(ctx)
	for ended := false; ; {
		if c := ch.popEvent(); c != nil {
			return c, c.overrunError()
		}
		if ended {
			return nil, ch.checkUsable("wait for completion channel")
		}
		select {
		case <-ch.more:
		case <-ch.done:
			ended = true
		case <-ch.dev.ended: // look once more: what was flushed is listed
			ended = true
		case <-ctx.Done():
			if err := ch.checkUsable("wait for completion channel"); err != nil {
				return nil, err
			}
			return nil, ctx.Err()
		}
	}
}

// String names the channel for errors.
func (ch *CompChannel) String() string { return fmt.Sprintf("completion channel %d", ch.num) }

// checkUsable is the error that op gets from a channel that has ended.
func (ch *CompChannel) checkUsable(op string) error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed {
		return &verbs.OpError{Op: op, Object: ch.String(), Err: verbs.ErrClosed}
	}
	return ch.dev.checkUsable(op)
}

// enqueueEvent lists a queue, unless it is listed already. The queue's lock is held. If the
// service is at it, the handler has the first choice.
func (ch *CompChannel) enqueueEvent(c *CQ) {
	list := &ch.waiting
	ch.mu.Lock()
	if ch.servicePolls.Load() > 0 {
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

// wakeOne lets one waiter look.
func (ch *CompChannel) wakeOne() {
	ch.dev.wakeups.Add(1)
	select {
	case ch.more <- struct{}{}:
	default:
	}
}

// popEvent takes the oldest queue off the list, or returns nil.
func (ch *CompChannel) popEvent() *CQ {
	ch.mu.Lock()
	c := ch.waiting.pop()
	left := ch.waiting.oldest != nil
	ch.mu.Unlock()
	if left {
		ch.wakeOne()
	}
	return c
}

// addUser counts the queues that report to the channel.
func (ch *CompChannel) addUser(op string) error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed {
		return &verbs.OpError{Op: op, Object: ch.String(), Err: verbs.ErrClosed}
	}
	ch.users++
	return nil
}

// removeUser ends what use began. With keep, a pending event stays: its device has
// closed, and flushed completions can still be polled. The queue's lock is held.
func (ch *CompChannel) removeUser(c *CQ, keep bool) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.users--
	if !keep {
		c.removeFromList()
	}
}

// Destroy implements verbs.CompChannel. Destroying twice is safe.
func (ch *CompChannel) Destroy() error {
	if err := ch.close(); err != nil {
		return err
	}
	ch.removeHandler() // without the lock: that of the device is above it
	return nil
}

func (ch *CompChannel) close() error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed {
		return nil
	}
	if ch.users > 0 {
		return &verbs.OpError{Op: "destroy completion channel", Object: ch.String(), Err: verbs.ErrBusy,
			Detail: fmt.Sprintf("%d completion queues report to it; destroy those first", ch.users)}
	}
	for ch.waiting.pop() != nil { // of a device that is closed; offered is empty when no queue reports
	}
	ch.closed = true
	close(ch.done)
	return nil
}
