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
	c.lingers.Store(true)
	if c.lingering == 0 {
		c.giveUp()
		c.mu.Unlock()
		return nil
	}
	c.poll()
	if c.discard(); c.dropped == 0 {
		c.core.CloseWrite()
	} else { // the peer is not to believe that all was read
		c.core.Leave()
	}
	c.post()
	c.readDeadline.interrupt()
	c.writeLimit.interrupt()
	c.notify()
	c.after()
	if !c.ended {
		c.linger = time.AfterFunc(c.lingering, c.abort)
		if !c.pumping { // else a call is on its way out, and leave sees to the rest
			c.arm()
			c.after()
		}
	}
	c.mu.Unlock()
	return nil
}

// pending tells what a closed connection waits for.
func (c *Conn) pending() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := c.core.Levels().Send; {
	case c.ended:
		return "the peer has not acknowledged the end"
	case n > 0:
		return fmt.Sprintf("of what was written %d bytes are not known to have arrived", n)
	}
	return "the peer has not closed"
}

// discard drops what nobody will read after Close.
func (c *Conn) discard() {
	var waste [4096]byte
	for n := c.core.Read(waste[:]); n > 0; n = c.core.Read(waste[:]) {
		c.dropped += uint64(n)
	}
	c.core.Refuse()
	c.post()
}

// after ends a closed connection when nothing remains to be done. The lock is
// held.
func (c *Conn) after() {
	if !c.closed || c.ended || c.pumping {
		return
	}
	switch {
	case c.core.Err() != nil:
	case c.core.Over(): // both halves have ended
	case c.dropped > 0 && c.core.Delivered(): // the peer has sent, or goes on sending, to nobody
		if c.core.Abort() {
			c.post()
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
	if c.ended {
		return
	}
	c.closed = true
	c.giveUp()
}

// giveUp drops what is under way, and resets the connection. The lock is held.
func (c *Conn) giveUp() {
	if c.core.Abort() {
		c.post()
	}
	c.core.Fail(net.ErrClosed)
	c.teardown()
}

// teardown frees everything, in a goroutine of its own. The lock is held.
func (c *Conn) teardown() {
	c.ended = true
	if c.alive != nil {
		c.alive.Stop()
	}
	if c.linger != nil {
		c.linger.Stop() // it would keep all our memory until then
	}
	c.torn.interrupt()
	c.readDeadline.interrupt()
	c.writeLimit.interrupt()
	c.notify()
	farewell := c.farewell()
	go func() {
		c.reading.Lock() // until the calls are out
		c.writing.Lock()
		c.lastWord()
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		_ = c.cmConn.Disconnect(ctx)
		cancel()
		c.free()
		c.writing.Unlock()
		c.reading.Unlock()
		c.stack.leave(c)
		close(c.gone)
	}()
}

// lastWord waits, not long, until the peer has the AbortConn that was posted, if
// one was. No call is there any more.
func (c *Conn) lastWord() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.core.Aborting() {
		return
	}
	limit := newDeadline()
	limit.set(time.Now().Add(time.Second))
	for c.core.Aborting() && !limit.past() {
		c.pump(limit)
	}
	limit.set(time.Time{})
}

// farewell is how long the peer may take to say that it knows of the end: not
// long, if it has not acknowledged our messages either.
func (c *Conn) farewell() time.Duration {
	var failed *verbs.CompletionError
	if errors.As(c.core.Err(), &failed) && failed.Status == verbs.WCRetryExcErr {
		return 500 * time.Millisecond
	}
	return 5 * time.Second
}

// free gives back what the connection has of the adapter.
func (c *Conn) free() {
	if c.qp != nil {
		_ = c.qp.Destroy()
	}
	if c.cq != nil {
		_ = c.cq.Destroy()
	}
	for _, r := range c.regions {
		r.drop()
	}
	if c.old.MR != nil {
		c.old.drop()
	}
}
