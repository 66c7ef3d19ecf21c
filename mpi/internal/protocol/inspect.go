package protocol

import (
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Stage is how far a request is, for those who ask why it takes so long.
type Stage uint8

// The stages.
const (
	Idle         Stage = iota // it has not begun, or is done
	Unsent                    // a send that waits for room on its way
	Unmatched                 // a send without its receive, or a receive without its message
	Transferring              // the message is on its way
)

// Stage is how far a request is.
func (r *Request) Stage() Stage {
	switch r.state {
	case stateIdle:
		return Idle
	case stateQueued:
		if r.remoteID != 0 || r.node.Item != nil { // it has met the other one
			return Transferring
		}
		return Unsent
	case stateAwaitMatched, stateRTSSent, stateUnmatched:
		return Unmatched
	}
	return Transferring
}

// Length is that of the message of a receive, in bytes: also of what there was no room
// for.
func (r *Request) Length() uint64 { return r.length }

// EachReceive calls f for the receives that wait for a message, oldest first, until
// it returns false. f changes nothing.
func (c *Core) EachReceive(f func(r *Request) bool) {
	c.posted.Each(func(n *match.Node[*Request]) bool { return f(n.Item) })
}

// EachMessage does so for the messages that wait for a receive, with whether they
// have come or are only announced.
func (c *Core) EachMessage(f func(m *Message, announced bool) bool) {
	c.unexpected.Each(func(n *match.Node[*Message]) bool { return f(n.Item, n.Item.header.Kind == envelope.RTS) })
}

// EachSend does so, in no order, for the sends that wait for their receive
// (Unmatched) or for room (Unsent). The rank is Request.Dest.
func (c *Core) EachSend(f func(r *Request) bool) {
	for _, s := range c.requests.slots {
		if s.r != nil && (s.r.state == stateAwaitMatched || s.r.state == stateRTSSent) && !f(s.r) {
			return
		}
	}
	for rank := range c.peers {
		q := &c.peers[rank].queue
		for i := range q.Len() {
			if o := q.At(i); o.op == opMessage && !f(o.r) {
				return
			}
		}
	}
}
