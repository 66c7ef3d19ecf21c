package protocol

import (
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/wire/bsdh"
)

// receiveQuery are about receives in the NIC design.
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
type receiveQuery struct {
	wantLend  bool // somebody here would lend, and copies nothing meanwhile
	due       bool // and nobody has asked since, or data has gone out behind the question
	asked     bool // we have asked, and there is no answer
	peerAsked bool // the peer has, and there has been nothing good to tell
}

// handleEmptyData is a message without data: a question, or else the answer to ours.
func (q *receiveQuery) handleEmptyData(question bool) {
	q.peerAsked = q.peerAsked || question
	q.asked = q.asked && question
}

// mayLend reports whether the peer is known to have a receive for a message that
// lends memory, and nothing in front of it.
func (c *Core) mayLend() bool {
	return c.peer.FlowControl != flow.NIC || c.sender.Unposted() == 0 && c.credits.Available() > 0
}

// RequestReceiveUpdate is for who would lend, and cannot. Until the next Write the peer is made to tell of
// receives, as often as data that lies in front has used up those it has told of. It is true if
// CanOffer and CanSink may be true later.
func (c *Core) RequestReceiveUpdate() bool {
	if c.mayLend() || c.err != nil || c.closing {
		return false
	}
	c.receiveQuery.wantLend, c.receiveQuery.due = true, true
	c.buildRequests()
	return true
}

// sendReceiveQuery asks, if somebody would lend and it is a receive that is missing. Answers take
// receives, too: two ends that asked again because of those would do so for ever.
func (c *Core) sendReceiveQuery() {
	q := &c.receiveQuery
	q.wantLend = q.wantLend && !c.mayLend()
	if !q.wantLend || !q.due || q.asked || c.closing || c.credits.Available() > 0 {
		return
	}
	q.asked, q.due = true, false
	c.queueControl(control{id: bsdh.MIDData, flags: bsdh.RequestPipe})
	c.postUnordered()
}

// answerReceiveQuery answers when there is a receive.
func (c *Core) answerReceiveQuery() {
	if c.receiveQuery.peerAsked && c.slots.posted > 0 {
		c.receiveQuery.peerAsked = false
		c.queueControl(control{id: bsdh.MIDData})
	}
}
