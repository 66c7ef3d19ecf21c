package protocol

import (
	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/sdp/internal/flow"
)

// A receiveQuery asks the peer about its receives with NIC flow control.
//
// A message for which the peer has no receive waits in the local adapter until the peer's
// application reads. That is acceptable for data, but not for a message that lends memory or
// reclaims it: the lender must get its memory back in bounded time, for example by a deadline.
// Before lending, the peer must be known to have a receive. When the first of the two messages
// has arrived, the receive is available again, since messages without data leave the ring
// unchanged.
//
// Nothing else requires that knowledge, so a peer reports its receives only on request, by an
// empty Data message with RequestPipe. Until the reply arrives, data is copied.
type receiveQuery struct {
	wantLend  bool // a caller wants to lend memory and copies nothing meanwhile
	due       bool // no query since then, or data has been sent after the last query
	asked     bool // a query is outstanding
	peerAsked bool // the peer has a query outstanding, and no receive is posted yet
}

// handleEmptyData handles a Data message without payload: a query, or the reply to the local one.
func (q *receiveQuery) handleEmptyData(question bool) {
	q.peerAsked = q.peerAsked || question
	q.asked = q.asked && question
}

// mayLend reports whether the peer is known to have a receive for a message that lends memory,
// with no data ahead of it.
func (c *Core) mayLend() bool {
	return c.peer.FlowControl != flow.NIC || c.sender.Unposted() == 0 && c.credits.Available() > 0
}

// RequestReceiveUpdate makes the peer report its receives, until the next Write, whenever data
// ahead has used up the receives it reported. It returns true if CanOffer and CanOfferSink may
// become true. Call it when mayLend prevents an offer.
func (c *Core) RequestReceiveUpdate() bool {
	if c.mayLend() || c.err != nil || c.closing {
		return false
	}
	c.receiveQuery.wantLend, c.receiveQuery.due = true, true
	c.buildRequests()
	return true
}

// sendReceiveQuery sends a query if a caller wants to lend and no receive is known. Replies use
// receives, too, so a reply must not cause another query: two ends would exchange them endlessly.
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

// answerReceiveQuery replies to the peer's query when a receive is posted.
func (c *Core) answerReceiveQuery() {
	if c.receiveQuery.peerAsked && c.slots.posted > 0 {
		c.receiveQuery.peerAsked = false
		c.queueControl(control{id: bsdh.MIDData})
	}
}
