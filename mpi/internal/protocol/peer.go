package protocol

import (
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/internal/fifo"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// A peer is the state of another rank.
type peer struct {
	queue         fifo.Queue[sendOp] // send queue: operations that wait for the net
	queuedActives int                // Active packets in queue
	sendSeq       uint32             // sequence number of the next ordered packet to it
	recvSeq       uint32             // sequence number expected from it

	early      map[uint32]*Message // out-of-order packets by sequence number
	earlyBytes int

	unexpectedBytes  int    // in unexpected messages of this rank, with overhead
	throttled        bool   // the rank is asked to send RTS only
	throttleSent     uint32 // number of the last Throttle sent
	throttleReceived uint32 // number of the last Throttle received
	announceAll      bool   // the rank asked us to send RTS only

	err           error
	failOnceEmpty error // error for FailPeer when queue becomes empty, or nil
}

// noPeer is the state of ranks that nothing concerned yet. It is not changed.
var noPeer peer

// peerState returns the state of a rank for reading.
func (c *Core) peerState(rank int) *peer {
	if p := c.peers.Find(rank); p != nil {
		return p
	}
	return &noPeer
}

// FailPeer marks a rank as failed. The caller has disconnected it. The requests that
// wait for the rank fail; messages of it that are complete stay. A request whose memory
// the net still owns completes by TransferDone.
func (c *Core) FailPeer(rank int, cause error) {
	p := c.peers.Get(rank)
	if p.err != nil {
		return
	}
	p.err = c.newLostError(rank, cause)
	c.failedPeers = append(c.failedPeers, rank)
	l := deferredCall{f: (*Core).failPeer, rank: rank}
	if c.deferIfBusy(l) {
		return
	}
	c.enter()
	defer c.exit()
	c.failPeer(l)
}

// FailPeerOnceSent calls FailPeer as soon as the send queue to a rank that ends is empty, so
// that the reply that the rank waits for leaves before. The rank must not use the memory of any
// request, because it is not disconnected until then.
func (c *Core) FailPeerOnceSent(rank int, cause error) {
	if p := c.peers.Get(rank); p.queue.Len() > 0 {
		p.failOnceEmpty = cause
		return
	}
	c.FailPeer(rank, cause)
}

// newLostError returns the error of the requests that wait for a failed rank.
func (c *Core) newLostError(rank int, cause error) error {
	if c.failCause != nil {
		return c.failCause
	}
	return &LostError{Rank: rank, Cause: cause, RankName: c.RankName}
}

// LostError is the error of requests that wait for a failed rank. It wraps ErrLost.
type LostError struct {
	Rank     int
	Cause    error            // reported by the net
	RankName func(int) string // host and process of the rank; nil or "" if unknown
}

// Error implements error. It calls RankName, which may block.
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

// Unwrap returns ErrLost and the cause.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Cause} }

// failPeer completes all requests that wait for a failed rank.
func (c *Core) failPeer(l deferredCall) {
	rank, p := l.rank, c.peers.Get(l.rank)
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
			c.recycleMessage(n.Item)
		}
		return true
	})
	p.queue, p.queuedActives, p.early, p.earlyBytes = fifo.Queue[sendOp]{}, 0, nil, 0
	if c.OnPeerFailed != nil {
		c.deferred = append(c.deferred, deferredCall{f: func(c *Core, l deferredCall) { c.OnPeerFailed(l.rank) }, rank: rank})
	}
}

// FailAll fails, with why, all requests that wait for a packet or in a send queue, and
// all that start later. Requests whose memory the net owns complete by TransferDone. A
// rank that fails afterwards fails no request with another error.
func (c *Core) FailAll(cause error) {
	c.enter()
	defer c.exit()
	c.failCause = cause
	c.posted.Each(func(n *match.Node[*Request]) bool {
		c.posted.Remove(n)
		c.complete(n.Item, cause)
		return true
	})
	for _, s := range c.requests.slots {
		if s.r != nil && s.r.state != stateReading && s.r.state != stateWriting {
			c.complete(s.r, cause)
		}
	}
	c.unexpected.Each(func(n *match.Node[*Message]) bool {
		if self := n.Item.selfSend; self != nil {
			c.dequeueUnexpected(n.Item)
			c.complete(self, cause)
		}
		return true
	})
	for _, p := range c.peers.All() {
		q := &p.queue
		for range q.Len() {
			o := q.Pop()
			if o.r != nil && !o.r.Done {
				c.complete(o.r, cause)
			}
			if o.r == nil {
				q.Push(o)
			}
		}
	}
}

// PeerError returns the error of a failed rank, or nil.
func (c *Core) PeerError(rank int) error { return c.peerState(rank).err }

// FailedPeers returns the number of failed ranks.
func (c *Core) FailedPeers() int { return len(c.failedPeers) }

// SourceError returns the error of a failed rank among the sources of a receive or
// probe, which could block forever, or nil. among is Request.Sources.
func (c *Core) SourceError(e match.Envelope, among []int) error {
	if len(c.failedPeers) == 0 {
		return nil
	}
	if e.Source != match.Any {
		return c.peerState(int(e.Source)).err
	}
	for _, rank := range c.failedPeers {
		if among == nil || slices.Contains(among, rank) {
			return c.peerState(rank).err
		}
	}
	return nil
}
