package protocol

import (
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// peer is what a Core knows of another rank.
type peer struct {
	queue         fifo.Queue[sendOp] // what waits for room on the way to it
	queuedActives int                // of these: Active packets
	sendSeq       uint32             // of the next ordered packet to it
	recvSeq       uint32             // that is expected from it

	early      map[uint32]*Message // by number: packets that came before their turn
	earlyBytes int

	unexpectedBytes  int    // bytes that messages of it take here until they are received
	throttled        bool   // so many that it is to announce what it sends
	throttleSent     uint32 // number of the last Throttle to it
	throttleReceived uint32 // and from it
	announceAll      bool   // we are to announce what we send

	err error
}

// FailPeer says that a rank is cut off. Whatever waits for it fails; what has come
// from it and is complete stays. A request whose memory the net still has is
// done when Moved says so.
func (c *Core) FailPeer(rank int, why error) {
	p := &c.peers[rank]
	if p.err != nil {
		return
	}
	p.err = c.newLostError(rank, why)
	c.failedPeers = append(c.failedPeers, rank)
	l := deferredCall{f: (*Core).failPeer, rank: rank}
	if c.deferIfBusy(l) {
		return
	}
	c.enter()
	defer c.exit()
	c.failPeer(l)
}

// newLostError is the error of what waits for a rank that is lost.
func (c *Core) newLostError(rank int, why error) error {
	if c.failCause != nil {
		return c.failCause
	}
	return &LostError{Rank: rank, Cause: why, RankName: c.RankName}
}

// LostError is the error of what waits for a lost rank: an ErrLost.
type LostError struct {
	Rank     int
	Cause    error            // what the net says
	RankName func(int) string // where and which process the rank is, nil or "" if unknown
}

// Error implements error. It calls Name, and so may take as long as that.
func (e *LostError) Error() string {
	name := ""
	if e.RankName != nil {
		name = e.RankName(e.Rank)
	}
	if name != "" {
		name = " (" + name + ")"
	}
	return fmt.Sprintf("rank %d%s is lost: %v", e.Rank, name, e.Cause)
}

// Unwrap returns ErrLost and what the net says.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Cause} }

// failPeer ends everything that waits for a lost rank.
func (c *Core) failPeer(l deferredCall) {
	rank, p := l.rank, &c.peers[l.rank]
	for p.queue.Len() > 0 {
		if r := p.queue.Pop().r; r != nil {
			c.complete(r, p.err)
		}
	}
	for _, s := range c.requests.slots {
		if s.r != nil && int(s.r.peer) == rank && s.r.state != stateReading && s.r.state != stateWriting {
			c.complete(s.r, p.err)
		}
	}
	c.posted.Each(func(n *match.Node[*Request]) bool {
		if n.Item.canMatch(rank) {
			c.posted.Remove(n)
			c.complete(n.Item, p.err)
		}
		return true
	})
	c.unexpected.Each(func(n *match.Node[*Message]) bool {
		if int(n.Envelope.Source) == rank && n.Item.header.Kind == envelope.RTS {
			c.dequeueUnexpected(n.Item)
			c.recycle(n.Item)
		}
		return true
	})
	p.queue, p.queuedActives, p.early, p.earlyBytes = fifo.Queue[sendOp]{}, 0, nil, 0
	if c.OnPeerFailed != nil {
		c.deferred = append(c.deferred, deferredCall{f: func(c *Core, l deferredCall) { c.OnPeerFailed(l.rank) }, rank: rank})
	}
}

// FailAll ends all requests that wait for a packet or their turn, and all that begin from now
// on, with an error: the program wants no more. Those whose memory the net has are done
// when Moved says so. Ranks that are lost from now on end nothing otherwise.
func (c *Core) FailAll(why error) {
	c.enter()
	defer c.exit()
	c.failCause = why
	c.posted.Each(func(n *match.Node[*Request]) bool {
		c.posted.Remove(n)
		c.complete(n.Item, why)
		return true
	})
	for _, s := range c.requests.slots {
		if s.r != nil && s.r.state != stateReading && s.r.state != stateWriting {
			c.complete(s.r, why)
		}
	}
	c.unexpected.Each(func(n *match.Node[*Message]) bool {
		if self := n.Item.selfSend; self != nil {
			c.dequeueUnexpected(n.Item)
			c.complete(self, why)
		}
		return true
	})
	for rank := range c.peers {
		q := &c.peers[rank].queue
		for range q.Len() {
			o := q.Pop()
			if o.r != nil && !o.r.Done {
				c.complete(o.r, why)
			}
			if o.r == nil {
				q.Push(o)
			}
		}
	}
}

// PeerError is why a rank is lost, nil if it is not.
func (c *Core) PeerError(rank int) error { return c.peers[rank].err }

// SourceError says why a receive, or a probe, might wait for ever: a rank that it
// can have its message from is lost. Among is as in Request.
func (c *Core) SourceError(e match.Envelope, among []int) error {
	if len(c.failedPeers) == 0 {
		return nil
	}
	if e.Source != match.Any {
		return c.peers[e.Source].err
	}
	for _, rank := range c.failedPeers {
		if among == nil || slices.Contains(among, rank) {
			return c.peers[rank].err
		}
	}
	return nil
}
