package rnic

import "github.com/softrnic/softrnic/qp"

// Posts of a stream are corked to coalesce while the batch is small and corkShare
// times its bytes plus corkFloor are in flight. The batch leaves with the next
// post, poll or acknowledgement, or the service sends it.
const (
	corkBytes   = 48 << 10
	corkPackets = 48
	corkShare   = 2
	corkFloor   = 8 << 10
)

// corkStream reports whether the batch, to which q has just added, may be held
// back to coalesce with later posts. If so it requests the service as a
// fallback.
func (s *shard) corkStream(q *queuePair) bool {
	if !s.canCork() || q.core.InFlight() < corkShare*(s.tx.Bytes()+s.tx.Len()*qp.PacketCost)+corkFloor {
		return false
	}
	s.corked.Store(true)
	s.requestService()
	return true
}

// canCork reports whether there is a batch that is small enough to be held back.
func (s *shard) canCork() bool {
	return s.tx.Len() > 0 && s.tx.Bytes() < corkBytes && s.tx.Len() < corkPackets && !s.dev.options.NoService
}

// minGatherFollowers is the number of followers from which on posts are left to
// the leader to coalesce.
const minGatherFollowers = 4

// leaveToLeader reports whether the waiter that leads will send the batch: the
// leader is awake, polls again after all runnable goroutines have run, and
// sends their posts together. This serves many queue pairs with a goroutine
// each, of which the last read woke several.
func (s *shard) leaveToLeader() bool {
	if s.followers.Load() < minGatherFollowers || !s.canCork() {
		return false
	}
	s.corked.Store(true)
	// A leader that goes to sleep or returns either is seen here or sees corked.
	return s.leader.Load() != nil && !s.token.isAsleep()
}

// flushDeferred sends the acknowledgements that a poller has deferred, and the
// batch that is held back, and reports whether there were any. s.mu must not be
// held.
func (s *shard) flushDeferred() bool {
	if s.ackQueueLen.Load() == 0 && !s.corked.Load() {
		return false
	}
	s.mu.Lock()
	s.drainAcks(s.dev.now())
	s.flush()
	s.unlock()
	return true
}

// flushCorked is like flushDeferred, if a batch is held back.
func (s *shard) flushCorked() {
	if s.corked.Load() {
		s.flushDeferred()
	}
}
