package protocol

// urgent is the out-of-band data: a byte of the stream that the sender marks. As
// with TCP there is one at a time, and the last one counts.
type urgent struct {
	out     uint64 // position behind our urgent byte, in what was written
	waiting bool   // it is not posted yet
	coming  bool   // nor even written: the send buffer had no room
	told    bool   // the peer knows that there is one

	announced bool   // the peer has one
	in        uint64 // position behind the last that came, in what Read returns
}

// mark marks the byte before a position of what was written.
func (u *urgent) mark(pos uint64) { u.out, u.waiting, u.coming = pos, true, false }

// pending reports whether an urgent byte waits to be sent.
func (u *urgent) pending() bool { return u.waiting || u.coming }

// last reports whether the urgent byte is the last of the message that is posted
// and ends at a position.
func (u *urgent) last(end uint64) bool {
	if !u.waiting || end != u.out {
		return false
	}
	u.waiting = false
	return true
}

// arrive takes note of an urgent byte before a position of what Read returns.
func (u *urgent) arrive(pos uint64) { u.in, u.announced = pos, false }

// SendUrgent is Write of bytes the last of which is urgent: the peer's
// application is told as soon as possible that it is coming, and where in the
// stream it is. If less than all is taken the call is to be repeated with the
// rest.
func (c *Core) SendUrgent(p []byte) int {
	if c.err != nil || c.closing || len(p) == 0 {
		return 0
	}
	if !c.urge.pending() {
		c.urge.told = false
	}
	c.urge.coming = true
	n := c.write(p, true)
	c.pump() // the announcement, if that is all that can go
	return n
}

// Urgent is how many bytes there are to read up to and with the last urgent one,
// 0 if there is none, and whether the peer has announced another, which
// has not come yet.
func (c *Core) Urgent() (ahead int, announced bool) {
	if c.urge.in > c.position {
		ahead = int(c.urge.in - c.position)
	}
	return ahead, c.urge.announced
}
