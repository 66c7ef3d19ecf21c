package protocol

import (
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// Stage is how far a request is, for those who ask why it takes so long.
type Stage uint8

// The stages.
const (
	Idle      Stage = iota // it has not begun, or is done
	Unsent                 // a send that waits for room on its way
	Unmatched              // a send without its receive, or a receive without its message
	Moving                 // the message is on its way
)

// Stage is how far a request is.
func (r *Request) Stage() Stage {
	switch r.state {
	case idle:
		return Idle
	case queued:
		if r.to != 0 || r.node.Item != nil { // it has met the other one
			return Moving
		}
		return Unsent
	case matching, offered, waiting:
		return Unmatched
	}
	return Moving
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
	c.unexpected.Each(func(n *match.Node[*Message]) bool { return f(n.Item, n.Item.h.Kind == envelope.Ready) })
}

// EachSend does so, in no order, for the sends that wait for their receive
// (Unmatched) or for room (Unsent). The rank is Request.Dest.
func (c *Core) EachSend(f func(r *Request) bool) {
	for _, s := range c.requests.slots {
		if s.r != nil && (s.r.state == matching || s.r.state == offered) && !f(s.r) {
			return
		}
	}
	for rank := range c.peers {
		q := &c.peers[rank].queue
		for i := range q.Len() {
			if o := q.At(i); o.op == message && !f(o.r) {
				return
			}
		}
	}
}
