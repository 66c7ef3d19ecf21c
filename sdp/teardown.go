package sdp

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// teardownIfDone tears down a closed connection that has nothing left to send or to wait for.
// c.mu must be held.
func (c *Conn) teardownIfDone() {
	if !c.closed || c.tornDown || c.progress.Leading() {
		return
	}
	switch {
	case c.core.Err() != nil:
	case c.core.BothClosed(): // both halves are closed
	case c.discarded > 0 && c.core.Delivered(): // all data is delivered, and later data of the peer would be discarded
		if c.core.Abort() {
			c.postPending()
		}
	default:
		return
	}
	c.teardown()
}

// abort resets the connection immediately.
func (c *Conn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tornDown {
		return
	}
	c.closed = true
	c.resetAndTeardown()
}

// resetAndTeardown discards outstanding data, sends an AbortConn if possible and tears the
// connection down. c.mu must be held.
func (c *Conn) resetAndTeardown() {
	if c.core.Abort() {
		c.postPending()
	}
	c.core.Fail(net.ErrClosed)
	c.teardown()
}

// teardown releases all resources, in its own goroutine. c.mu must be held.
func (c *Conn) teardown() {
	c.tornDown = true
	if c.keepAliveTimer != nil {
		c.keepAliveTimer.Stop()
	}
	if c.lingerTimer != nil {
		c.lingerTimer.Stop() // the timer would keep the connection's memory alive
	}
	c.endDeadline.cancel()
	c.readDeadline.cancel()
	c.writeDeadline.cancel()
	c.progress.Notify()
	timeout := c.disconnectTimeout()
	go func() {
		c.reading.Lock() // wait for pending calls
		c.writing.Lock()
		c.waitAbortSent()
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		_ = c.cmConn.Disconnect(ctx, nil)
		cancel()
		c.freeResources()
		c.writing.Unlock()
		c.reading.Unlock()
		c.stack.removeConn(c)
		close(c.done)
	}()
}

// waitAbortSent waits up to a second for the acknowledgement of an AbortConn, if one was posted.
// No call may be pending.
func (c *Conn) waitAbortSent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.progress.Wait(ctx, (*abortSent)(c))
}

// abortSent is the condition that no AbortConn is unacknowledged.
type abortSent Conn

// Ready implements progress.Waitable.
func (c *abortSent) Ready() bool { return !c.core.Aborting() }

// disconnectTimeout returns the time to wait for the peer's DREP: 500 ms if the peer does not
// acknowledge data either, otherwise 5 s.
func (c *Conn) disconnectTimeout() time.Duration {
	var failed *verbs.CompletionError
	if errors.As(c.core.Err(), &failed) && failed.Status == verbs.WCRetryExcErr {
		return 500 * time.Millisecond
	}
	return 5 * time.Second
}

// freeResources releases the connection's queue pair, CQ and memory.
func (c *Conn) freeResources() {
	if c.qp != nil {
		_ = c.qp.Close()
	}
	if c.cq != nil {
		_ = c.cq.Close()
	}
	for _, r := range c.regions {
		r.deregister()
	}
	if c.oldRegion.MR != nil {
		c.oldRegion.deregister()
	}
}
