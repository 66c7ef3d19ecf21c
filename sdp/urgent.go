package sdp

import "syscall"

// WriteUrgent is like Write with the last byte of p urgent (SDP's out-of-band data, MSG_OOB of
// sockets). The peer is notified at once, even if it does not read; with NIC flow control when
// its ring has space, because no message overtakes data in the adapter. The byte remains in the
// stream, as with SO_OOBINLINE. A later urgent byte replaces an earlier one.
func (c *Conn) WriteUrgent(p []byte) (n int, err error) {
	if !c.isOpen() {
		return 0, syscall.EINVAL
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enterCall()
	defer c.exitCall()
	if err := c.checkWritable(); err != nil {
		return 0, c.opError("write", err)
	}
	for n < len(p) {
		if err := c.checkWritable(); err != nil {
			return n, c.opError("write", err)
		}
		c.pollCompletions()
		k := c.core.SendUrgent(p[n:])
		n += k
		c.postPending()
		if k == 0 {
			c.waitFor(waitWritable, c.writeDeadline)
		}
	}
	return n, nil
}

// Urgent returns the number of unread bytes up to and including the peer's urgent byte, or 0, and
// whether the peer has announced an urgent byte that has not arrived. The urgent byte is the next
// one at 1 (SIOCATMARK of sockets).
func (c *Conn) Urgent() (ahead int, announced bool) {
	if !c.isOpen() {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pollCompletions()
	return c.core.Urgent()
}

// UrgentSignal returns a channel with capacity 1 that gets an element when the peer announces an
// urgent byte or one arrives (SIGURG of sockets).
func (c *Conn) UrgentSignal() <-chan struct{} {
	if !c.isOpen() {
		return nil
	}
	return c.urgentSignal
}

// signalUrgent sends to the channel if the urgent state has changed. c.mu must be held.
func (c *Conn) signalUrgent() {
	ahead, announced := c.core.Urgent()
	is := ahead > 0 || announced
	if is && (!c.urgentKnown || announced != c.urgentAnnounced) {
		select {
		case c.urgentSignal <- struct{}{}:
		default:
		}
	}
	c.urgentKnown, c.urgentAnnounced = is, announced
}
