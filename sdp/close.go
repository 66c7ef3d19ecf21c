package sdp

import (
	"net"
	"syscall"
	"time"
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
