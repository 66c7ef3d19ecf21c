package sdp

import "syscall"

// WriteUrgent is Write whose last byte is urgent (SDP's out-of-band data,
// MSG_OOB of sockets): the peer is told at once that it is coming, even if it
// reads nothing else. (With NIC flow control it is told when its ring has room:
// nothing passes what the adapters hold.) The byte stays in the stream, as with
// SO_OOBINLINE, and there is one at a time: a later one takes its place.
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

// Urgent is how many bytes there are to read up to and with the peer's urgent
// byte, 0 if there is none, and whether one is on its way that has not come:
// where sockets have SIOCATMARK, at 1 the next byte is it.
func (c *Conn) Urgent() (ahead int, announced bool) {
	if !c.isOpen() {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pollCompletions()
	return c.core.Urgent()
}

// UrgentSignal has an element when what Urgent says may have changed for more: an
// urgent byte was announced, or has come. It is what SIGURG is to sockets.
func (c *Conn) UrgentSignal() <-chan struct{} {
	if !c.isOpen() {
		return nil
	}
	return c.urgentSignal
}

// signalUrgent fills the channel if there are news. The lock is held.
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
