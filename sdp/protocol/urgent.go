package protocol

import "github.com/softrnic/softrnic/sdp/flow"

// urgent is the out-of-band data: a byte of the stream that the sender marks. As
// with TCP there is one at a time, and the last one counts.
type urgent struct {
	out       uint64 // position behind our urgent byte, in what was written
	waiting   bool   // it is not posted yet
	announced bool   // the peer has one
	mark      int    // bytes to read up to and with the peer's urgent byte, 0 for none
}

// pending reports whether an urgent byte waits to be sent.
func (u *urgent) pending() bool { return u.waiting }

// in reports whether the urgent byte is the last of a message, which is posted
// with that.
func (u *urgent) in(m flow.Message) bool {
	if !u.waiting || m.Pos+uint64(m.Len) != u.out {
		return false
	}
	u.waiting = false
	return true
}

// arrive takes note of an urgent byte at the end of what is buffered.
func (u *urgent) arrive(buffered int) { u.mark, u.announced = buffered, false }
