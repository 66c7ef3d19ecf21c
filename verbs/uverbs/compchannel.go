//go:build linux

package uverbs

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// A compChannel is a verbs.CompChannel, or the channel of all queues without one. A goroutine reads
// its events.
type compChannel struct {
	dev     *device
	file    *os.File
	fd      int32
	handler atomic.Pointer[func(verbs.CQ) bool]
	done    chan struct{} // closed by Close

	mu     sync.Mutex
	users  int // queues
	closed bool
	queues []*completionQueue // with an event, the oldest first
	queued chan struct{}      // capacity 1: queues may have entries
}

// openChannel creates a channel of the kernel.
func (d *device) openChannel(op string) (*compChannel, error) {
	if d.isClosed.Load() {
		return nil, closedError(op, d.String())
	}
	var r createChannelResponse
	if err := execute(d.file, cmdCreateChannel, &none{}, &r); err != nil {
		return nil, opError(op, d.String(), err)
	}
	file, err := openEvents(r.fd, d.name+" completion events")
	if err != nil {
		return nil, opError(op, d.String(), err)
	}
	c := &compChannel{dev: d, file: file, fd: int32(r.fd), done: make(chan struct{}), queued: make(chan struct{}, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isClosed.Load() {
		return nil, errors.Join(closedError(op, d.String()), file.Close())
	}
	d.channels = append(d.channels, c)
	d.readers.Go(c.readEvents)
	return c, nil
}

// ownChannel returns the channel of the queues without one.
func (d *device) ownChannel() (*compChannel, error) {
	d.ownMu.Lock()
	defer d.ownMu.Unlock()
	if d.own == nil {
		c, err := d.openChannel("create CQ")
		if err != nil {
			return nil, err
		}
		d.own = c
	}
	return d.own, nil
}

// CreateCompChannel implements verbs.Device.
func (d *device) CreateCompChannel() (verbs.CompChannel, error) {
	c, err := d.openChannel("create completion channel")
	if err != nil {
		return nil, err
	}
	return c, nil
}

// readEvents reads events until the file is closed.
func (c *compChannel) readEvents() {
	var e completionEvent
	for {
		if n, err := c.file.Read(bytesOf(&e)); err != nil || n != len(bytesOf(&e)) {
			return
		}
		if q, ok := c.dev.findObject(e.userHandle).(*completionQueue); ok {
			q.handleEvent()
		}
	}
}

// raiseEvent reports an event of a queue: to the handler, to Wait of the channel, or to Wait of the queue.
func (c *compChannel) raiseEvent(q *completionQueue) {
	if h := c.handler.Load(); h != nil && (*h)(q) {
		return
	}
	if c == c.dev.own {
		q.waiters.setPending()
		q.waiters.wakeAll()
		return
	}
	c.mu.Lock()
	if !slices.Contains(c.queues, q) {
		c.queues = append(c.queues, q)
	}
	c.mu.Unlock()
	c.signalQueued()
}

// signalQueued wakes one call of Wait.
func (c *compChannel) signalQueued() {
	select {
	case c.queued <- struct{}{}:
	default:
	}
}

// String returns the name of the channel for errors.
func (c *compChannel) String() string { return "completion channel" }

// addUser counts the queues that use the channel.
func (c *compChannel) addUser(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users += n
}

// removeQueue ends the use by a queue and drops its pending event.
func (c *compChannel) removeQueue(q *completionQueue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	c.queues = slices.DeleteFunc(c.queues, func(have *completionQueue) bool { return have == q })
}

// isEnded reports whether the channel or its device is closed.
func (c *compChannel) isEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed || c.dev.isClosed.Load()
}

// CreateCQ implements verbs.CompChannel.
func (c *compChannel) CreateCQ(depth int) (verbs.CQ, error) {
	if c.isEnded() {
		return nil, closedError("create CQ", c.String())
	}
	return c.dev.createCQ(c, depth)
}

// Handle implements verbs.CompChannel. Every event reaches the handler, because no goroutine of the
// program makes progress in the kernel's stead.
func (c *compChannel) Handle(handler func(verbs.CQ) bool) error {
	const op = "set handler"
	if c.isEnded() {
		return closedError(op, c.String())
	}
	if handler == nil || !c.handler.CompareAndSwap(nil, &handler) {
		return invalidError(op, c.String(), "one handler, which is not nil")
	}
	return nil
}

// Wait implements verbs.CompChannel.
func (c *compChannel) Wait(ctx context.Context) (verbs.CQ, error) {
	const op = "wait for event"
	if ctx == nil {
		ctx = context.Background()
	}
	for {
		c.mu.Lock()
		if n := len(c.queues); n > 0 && !c.closed {
			q := c.queues[0]
			c.queues = slices.Delete(c.queues, 0, 1)
			c.mu.Unlock()
			if n > 1 {
				c.signalQueued() // another call may wait
			}
			if q.overrun.Load() {
				return q, q.overrunError(op, q.Depth())
			}
			return q, nil
		}
		c.mu.Unlock()
		if c.isEnded() {
			return nil, closedError(op, c.String())
		}
		select {
		case <-c.queued:
		case <-c.done:
		case <-c.dev.closed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close implements verbs.CompChannel.
func (c *compChannel) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed || c.dev.isClosed.Load():
		return nil
	case c.users > 0:
		return &verbs.OpError{Op: "close", Object: c.String(), Err: verbs.ErrBusy}
	}
	c.closed = true
	close(c.done)
	c.dev.mu.Lock()
	c.dev.channels = slices.DeleteFunc(c.dev.channels, func(have *compChannel) bool { return have == c })
	c.dev.mu.Unlock()
	return opError("close", c.String(), c.file.Close())
}
