package protocol

// urgentData is the state of out-of-band data: a byte of the stream that the sender marks. As in
// TCP, a new mark replaces the previous one.
type urgentData struct {
	sendPos         uint64 // position after the local urgent byte in the written stream
	unposted        bool   // the urgent byte is not posted
	unwritten       bool   // the urgent byte is not written, for lack of space in the send buffer
	announcedToPeer bool   // the peer knows of the urgent byte

	announced bool   // the peer has announced an urgent byte
	recvPos   uint64 // position after the peer's last urgent byte in the read stream
}

// setMark marks the byte before pos in the written stream.
func (u *urgentData) setMark(pos uint64) { u.sendPos, u.unposted, u.unwritten = pos, true, false }

// isPending reports whether the urgent byte is not posted.
func (u *urgentData) isPending() bool { return u.unposted || u.unwritten }

// endsMessage reports whether a message that ends at end carries the urgent byte as its last, and
// if so clears the mark.
func (u *urgentData) endsMessage(end uint64) bool {
	if !u.unposted || end != u.sendPos {
		return false
	}
	u.unposted = false
	return true
}

// recordArrival records an urgent byte before pos in the read stream.
func (u *urgentData) recordArrival(pos uint64) { u.recvPos, u.announced = pos, false }

// SendUrgent is like Write with the last byte of p urgent: the peer's application is notified of
// it as early as possible. If it accepts fewer bytes than len(p), call it again with the rest.
func (c *Core) SendUrgent(p []byte) int {
	if c.err != nil || c.closing || len(p) == 0 {
		return 0
	}
	if !c.oob.isPending() {
		c.oob.announcedToPeer = false
	}
	c.oob.unwritten = true
	n := c.write(p, true)
	c.buildRequests() // send at least the announcement
	return n
}

// Urgent returns the number of unread bytes up to and including the last urgent one, or 0, and
// whether the peer has announced another that has not arrived.
func (c *Core) Urgent() (ahead int, announced bool) {
	if c.oob.recvPos > c.position {
		ahead = int(c.oob.recvPos - c.position)
	}
	return ahead, c.oob.announced
}
