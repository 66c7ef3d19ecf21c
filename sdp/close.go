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

// Close ends the connection. It returns at once; what was written is still sent,
// within Options.Linger or what SetLinger says. The peer's Reads end with io.EOF
// and, if it writes more, its Writes with an error. If something that has come is
// unread, both end with ErrReset, as with TCP: its Reads once they have returned
// what we wrote.
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
	c.pollCompletions()
	if c.discardUnread(); c.discarded == 0 {
		c.core.CloseWrite()
	} else { // the peer is not to believe that all was read
		c.core.CloseWithoutDisConn()
	}
	c.postPending()
	c.readDeadline.cancel()
	c.writeDeadline.cancel()
	c.wakeWaiters()
	c.teardownIfDone()
	if !c.tornDown {
		c.lingerTimer = time.AfterFunc(c.lingerTime, c.abort)
		if !c.polling { // else a call is on its way out, and leave sees to the rest
			c.armCQ()
			c.teardownIfDone()
		}
	}
	c.mu.Unlock()
	return nil
}

// pendingReason tells what a closed connection waits for.
func (c *Conn) pendingReason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := c.core.Levels().Send; {
	case c.tornDown:
		return "the peer has not acknowledged the end"
	case n > 0:
		return fmt.Sprintf("of what was written %d bytes are not known to have arrived", n)
	}
	return "the peer has not closed"
}

// discardUnread drops what nobody will read after Close.
func (c *Conn) discardUnread() {
	var waste [4096]byte
	for n := c.core.Read(waste[:]); n > 0; n = c.core.Read(waste[:]) {
		c.discarded += uint64(n)
	}
	c.core.RefuseSource()
	c.postPending()
}

// teardownIfDone ends a closed connection when nothing remains to be done. The lock is
// held.
func (c *Conn) teardownIfDone() {
	if !c.closed || c.tornDown || c.polling {
		return
	}
	switch {
	case c.core.Err() != nil:
	case c.core.BothClosed(): // both halves have ended
	case c.discarded > 0 && c.core.Delivered(): // the peer has sent, or goes on sending, to nobody
		if c.core.Abort() {
			c.postPending()
		}
	default:
		return
	}
	c.teardown()
}

// abort ends the connection now.
func (c *Conn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tornDown {
		return
	}
	c.closed = true
	c.resetAndTeardown()
}

// resetAndTeardown drops what is under way, and resets the connection. The lock is held.
func (c *Conn) resetAndTeardown() {
	if c.core.Abort() {
		c.postPending()
	}
	c.core.Fail(net.ErrClosed)
	c.teardown()
}

// teardown frees everything, in a goroutine of its own. The lock is held.
func (c *Conn) teardown() {
	c.tornDown = true
	if c.keepAliveTimer != nil {
		c.keepAliveTimer.Stop()
	}
	if c.lingerTimer != nil {
		c.lingerTimer.Stop() // it would keep all our memory until then
	}
	c.endDeadline.cancel()
	c.readDeadline.cancel()
	c.writeDeadline.cancel()
	c.wakeWaiters()
	farewell := c.disconnectTimeout()
	go func() {
		c.reading.Lock() // until the calls are out
		c.writing.Lock()
		c.waitAbortSent()
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		_ = c.cmConn.Disconnect(ctx)
		cancel()
		c.freeResources()
		c.writing.Unlock()
		c.reading.Unlock()
		c.stack.removeConn(c)
		close(c.done)
	}()
}

// waitAbortSent waits, not long, until the peer has the AbortConn that was posted, if
// one was. No call is there any more.
func (c *Conn) waitAbortSent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.core.Aborting() {
		return
	}
	limit := newDeadline()
	limit.set(time.Now().Add(time.Second))
	for c.core.Aborting() && !limit.expired() {
		c.waitCompletions(limit)
	}
	limit.set(time.Time{})
}

// disconnectTimeout is how long the peer may take to say that it knows of the end: not
// long, if it has not acknowledged our messages either.
func (c *Conn) disconnectTimeout() time.Duration {
	var failed *verbs.CompletionError
	if errors.As(c.core.Err(), &failed) && failed.Status == verbs.WCRetryExcErr {
		return 500 * time.Millisecond
	}
	return 5 * time.Second
}

// freeResources gives back what the connection has of the adapter.
func (c *Conn) freeResources() {
	if c.qp != nil {
		_ = c.qp.Destroy()
	}
	if c.cq != nil {
		_ = c.cq.Destroy()
	}
	for _, r := range c.regions {
		r.deregister()
	}
	if c.oldRegion.MR != nil {
		c.oldRegion.deregister()
	}
}
