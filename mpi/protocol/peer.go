package protocol

import (
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/mpi/envelope"
	"github.com/softrnic/softrnic/mpi/match"
)

// peer is what a Core knows of another rank.
type peer struct {
	queue   fifo.Queue[outgoing] // what waits for room on the way to it
	actives int                  // of these: Active packets
	seq     uint32               // of the next ordered packet to it
	next    uint32               // that is expected from it

	early      map[uint32]*Message // by number: packets that came before their turn
	earlyBytes int

	held      int    // bytes that messages of it take here until they are received
	holding   bool   // so many that it is to announce what it sends
	told      uint32 // number of the last Throttle to it
	heard     uint32 // and from it
	announces bool   // we are to announce what we send

	lost         error
	lostOnceSent error // error for Lost when queue becomes empty, or nil
}

// Lost says that a rank is cut off. Whatever waits for it fails; what has come
// from it and is complete stays. A request whose memory the net still has is
// done when Moved says so.
func (c *Core) Lost(rank int, why error) {
	p := &c.peers[rank]
	if p.lost != nil {
		return
	}
	p.lost = c.lossOf(rank, why)
	c.lost = append(c.lost, rank)
	l := late{f: (*Core).bury, rank: rank}
	if c.postpone(l) {
		return
	}
	c.enter()
	defer c.leave()
	c.bury(l)
}

// LostOnceSent calls Lost as soon as the queue to a rank that ends is empty, so that the reply
// that it waits for leaves before. The rank must not use the memory of any request, because it
// is not cut off until then.
func (c *Core) LostOnceSent(rank int, why error) {
	if p := &c.peers[rank]; p.queue.Len() > 0 {
		p.lostOnceSent = why
		return
	}
	c.Lost(rank, why)
}

// lossOf is the error of what waits for a rank that is lost.
func (c *Core) lossOf(rank int, why error) error {
	if c.ended != nil {
		return c.ended
	}
	return &LostError{Rank: rank, Why: why, Name: c.Name}
}

// LostError is the error of what waits for a lost rank: an ErrLost.
type LostError struct {
	Rank int
	Why  error            // what the net says
	Name func(int) string // where and which process the rank is, nil or "" if unknown
}

// Error implements error. It calls Name, and so may take as long as that.
func (e *LostError) Error() string {
	name := ""
	if e.Name != nil {
		name = e.Name(e.Rank)
	}
	if name != "" {
		name = " (" + name + ")"
	}
	return fmt.Sprintf("rank %d%s is lost: %v", e.Rank, name, e.Why)
}

// Unwrap returns ErrLost and what the net says.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Why} }

// bury ends everything that waits for a lost rank.
func (c *Core) bury(l late) {
	rank, p := l.rank, &c.peers[l.rank]
	for p.queue.Len() > 0 {
		if r := p.queue.Pop().r; r != nil {
			c.done(r, p.lost)
		}
	}
	for _, s := range c.requests.slots {
		if s.r != nil && int(s.r.peer) == rank && s.r.state != fetching && s.r.state != storing {
			c.done(s.r, p.lost)
		}
	}
	c.posted.Each(func(n *match.Node[*Request]) bool {
		if n.Item.from(rank) {
			c.posted.Remove(n)
			c.done(n.Item, p.lost)
		}
		return true
	})
	c.unexpected.Each(func(n *match.Node[*Message]) bool {
		if int(n.Envelope.Source) == rank && n.Item.h.Kind == envelope.Ready {
			c.take(n.Item)
			c.recycle(n.Item)
		}
		return true
	})
	p.queue, p.actives, p.early, p.earlyBytes = fifo.Queue[outgoing]{}, 0, nil, 0
	if c.Gone != nil {
		c.late = append(c.late, late{f: func(c *Core, l late) { c.Gone(l.rank) }, rank: rank})
	}
}

// End ends all requests that wait for a packet or their turn, and all that begin from now
// on, with an error: the program wants no more. Those whose memory the net has are done
// when Moved says so. Ranks that are lost from now on end nothing otherwise.
func (c *Core) End(why error) {
	c.enter()
	defer c.leave()
	c.ended = why
	c.posted.Each(func(n *match.Node[*Request]) bool {
		c.posted.Remove(n)
		c.done(n.Item, why)
		return true
	})
	for _, s := range c.requests.slots {
		if s.r != nil && s.r.state != fetching && s.r.state != storing {
			c.done(s.r, why)
		}
	}
	c.unexpected.Each(func(n *match.Node[*Message]) bool {
		if self := n.Item.self; self != nil {
			c.take(n.Item)
			c.done(self, why)
		}
		return true
	})
	for rank := range c.peers {
		q := &c.peers[rank].queue
		for range q.Len() {
			o := q.Pop()
			if o.r != nil && !o.r.Done {
				c.done(o.r, why)
			}
			if o.r == nil {
				q.Push(o)
			}
		}
	}
}

// LostBecause is why a rank is lost, nil if it is not.
func (c *Core) LostBecause(rank int) error { return c.peers[rank].lost }

// Hopeless says why a receive, or a probe, might wait for ever: a rank that it
// can have its message from is lost. Among is as in Request.
func (c *Core) Hopeless(e match.Envelope, among []int) error {
	if len(c.lost) == 0 {
		return nil
	}
	if e.Source != match.Any {
		return c.peers[e.Source].lost
	}
	for _, rank := range c.lost {
		if among == nil || slices.Contains(among, rank) {
			return c.peers[rank].lost
		}
	}
	return nil
}
