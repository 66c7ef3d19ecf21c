package protocol

import (
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// A Stage is the progress of a request, for deadlock reports.
type Stage uint8

// The stages.
const (
	Idle         Stage = iota // not started, or done
	Unsent                    // a send in the send queue
	Unmatched                 // a send or a receive without its counterpart
	Transferring              // the data is in transfer
)

// Stage returns the progress of the request.
func (r *Request) Stage() Stage {
	switch r.state {
	case stateIdle:
		return Idle
	case stateQueued:
		if r.remoteID != 0 || r.node.Item != nil { // matched
			return Transferring
		}
		return Unsent
	case stateAwaitMatched, stateRTSSent, stateUnmatched:
		return Unmatched
	}
	return Transferring
}

// Length returns the length in bytes of the message of a receive, before truncation.
func (r *Request) Length() uint64 { return r.length }

// EachReceive calls f for the posted receives, oldest first, until f returns false. f
// must not call the Core.
func (c *Core) EachReceive(f func(r *Request) bool) {
	c.posted.Each(func(n *match.Node[*Request]) bool { return f(n.Item) })
}

// EachMessage calls f for the unexpected messages, oldest first, until f returns false.
// announced is true for an RTS. f must not call the Core.
func (c *Core) EachMessage(f func(m *Message, announced bool) bool) {
	c.unexpected.Each(func(n *match.Node[*Message]) bool { return f(n.Item, n.Item.header.Kind == envelope.RTS) })
}

// EachSend calls f, in no order, for the sends that are unmatched or in a send queue,
// until f returns false. f must not call the Core.
func (c *Core) EachSend(f func(r *Request) bool) {
	for _, s := range c.requests.slots {
		if s.r != nil && (s.r.state == stateAwaitMatched || s.r.state == stateRTSSent) && !f(s.r) {
			return
		}
	}
	for _, p := range c.peers.All() {
		q := &p.queue
		for i := range q.Len() {
			if o := q.At(i); o.op == opMessage && !f(o.r) {
				return
			}
		}
	}
}
