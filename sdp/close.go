package sdp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// Close closes the connection. It does not block: written data is still sent within
// Options.Linger or the time of SetLinger. The peer's Reads end with io.EOF, and its later Writes
// fail. If received data is unread, both directions of the peer end with ErrReset, as with TCP:
// its Reads after they have returned all data written here.
func (c *Conn) Close() error {
	if !c.isOpen() {
		return syscall.EINVAL
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.opError("close", net.ErrClosed)
	}
	c.closed = true
	c.isLingering.Store(true)
	if c.lingerTime == 0 {
		c.resetAndTeardown()
		c.mu.Unlock()
		return nil
	}
	c.progress.Poll()
	if c.discardUnread(); c.discarded == 0 {
		c.core.CloseWrite()
	} else { // the peer must not see an orderly end
		c.core.CloseWithoutDisConn()
	}
	c.postPending()
	c.readDeadline.cancel()
	c.writeDeadline.cancel()
	c.progress.Notify()
	c.teardownIfDone()
	if !c.tornDown {
		c.lingerTimer = time.AfterFunc(c.lingerTime, c.abort)
		if !c.progress.Leading() { // otherwise exitCall of the polling call arms the CQ
			c.armCQ()
			c.teardownIfDone()
		}
	}
	c.mu.Unlock()
	return nil
}

// CloseWrite closes the local half of the stream, as (*net.TCPConn).CloseWrite does: the peer
// reads the data written before and then io.EOF. A blocked Write returns syscall.EPIPE.
func (c *Conn) CloseWrite() error {
	if !c.isOpen() {
		return syscall.EINVAL
	}
	c.mu.Lock()
	if !c.closed && !c.writeShut {
		c.writeShut = true
		c.writeDeadline.wakeAndKeep()
	}
	c.mu.Unlock()
	c.lockCall(&c.writing)
	defer c.unlockCall(&c.writing)
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	c.core.CloseWrite()
	c.postPending()
	return c.opError("close", c.core.Err())
}

// CloseRead closes the reading side locally, as (*net.TCPConn).CloseRead does: Reads return data
// that has arrived, and then io.EOF. The peer is not notified. A blocked Read returns.
func (c *Conn) CloseRead() error {
	if !c.isOpen() {
		return syscall.EINVAL
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	if !c.readShut {
		c.readShut = true
		c.readDeadline.wakeAndKeep()
	}
	return nil
}

// pendingReason describes the event for which a closed connection waits.
func (c *Conn) pendingReason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := c.core.Levels().Send; {
	case c.tornDown:
		return "disconnect not confirmed by the peer"
	case n > 0:
		return fmt.Sprintf("%d written bytes not acknowledged", n)
	}
	return "not closed by the peer"
}

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
