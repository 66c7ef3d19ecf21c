package protocol

import (
	"github.com/softrnic/softrnic/sdp/flow"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// questions are about receives in the NIC design.
//
// A message for which the peer has no receive waits in our adapter until the
// peer's application reads. So may any message, but not one that lends memory,
// nor the one that asks for it back: who lends has to get it back in time, for
// a deadline for example. For these the peer must be known to have a receive.
// That is there again when the first of the two has come, since messages
// without data leave the ring as empty as it was.
//
// Nothing else needs to know, so nobody tells unless asked, by an empty Data with
// RequestPipe. Until the answer is there bytes are copied.
type questions struct {
	asked  bool // we have, and heard nothing since
	wanted bool // the peer has, and there has been nothing good to tell
}

// mayLend reports whether the peer is known to have a receive for a message that
// lends memory, and nothing in front of it.
func (c *Core) mayLend() bool {
	return c.peer.Design != flow.NIC || c.sender.Unposted() == 0 && c.credits.Left() > 0
}

// Ask is for who would lend, and cannot. If that is for want of a receive, it
// makes the peer tell of one, and is true: CanOffer and CanSink may be true when
// the answer is there, or what lies in front has gone out.
func (c *Core) Ask() bool {
	if c.mayLend() || c.err != nil || c.closing {
		return false
	}
	if c.credits.Left() <= 0 && !c.questions.asked {
		c.questions.asked = true
		c.say(control{id: bsdh.MIDData, flags: bsdh.RequestPipe})
		c.pump()
	}
	return true
}

// tell answers when there is a receive.
func (c *Core) tell() {
	if c.questions.wanted && c.slots.posted > 0 {
		c.questions.wanted = false
		c.say(control{id: bsdh.MIDData})
	}
}
