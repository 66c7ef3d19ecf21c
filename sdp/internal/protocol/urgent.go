package protocol

// urgentData is the out-of-band data: a byte of the stream that the sender marks. As
// with TCP there is one at a time, and the last one counts.
type urgentData struct {
	sendPos         uint64 // position behind our urgent byte, in what was written
	unposted        bool   // it is not posted yet
	unwritten       bool   // nor even written: the send buffer had no room
	announcedToPeer bool   // the peer knows that there is one

	announced bool   // the peer has one
	recvPos   uint64 // position behind the last that came, in what Read returns
}

// setMark marks the byte before a position of what was written.
func (u *urgentData) setMark(pos uint64) { u.sendPos, u.unposted, u.unwritten = pos, true, false }

// isPending reports whether an urgent byte waits to be sent.
func (u *urgentData) isPending() bool { return u.unposted || u.unwritten }

// endsMessage reports whether the urgent byte is the last of the message that is posted
// and ends at a position.
func (u *urgentData) endsMessage(end uint64) bool {
	if !u.unposted || end != u.sendPos {
		return false
	}
	u.unposted = false
	return true
}

// recordArrival takes note of an urgent byte before a position of what Read returns.
func (u *urgentData) recordArrival(pos uint64) { u.recvPos, u.announced = pos, false }

// SendUrgent is Write of bytes the last of which is urgent: the peer's
// application is told as soon as possible that it is coming, and where in the
// stream it is. If less than all is taken the call is to be repeated with the
// rest.
func (c *Core) SendUrgent(p []byte) int {
	if c.err != nil || c.closing || len(p) == 0 {
		return 0
	}
	if !c.oob.isPending() {
		c.oob.announcedToPeer = false
	}
	c.oob.unwritten = true
	n := c.write(p, true)
	c.buildRequests() // the announcement, if that is all that can go
	return n
}

// Urgent is how many bytes there are to read up to and with the last urgent one,
// 0 if there is none, and whether the peer has announced another, which
// has not come yet.
func (c *Core) Urgent() (ahead int, announced bool) {
	if c.oob.recvPos > c.position {
		ahead = int(c.oob.recvPos - c.position)
	}
	return ahead, c.oob.announced
}
