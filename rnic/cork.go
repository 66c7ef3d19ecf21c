package rnic

import (
	"time"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

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
func (s *shard) canCork() bool { return s.canCorkUpTo(corkBytes) }

func (s *shard) canCorkUpTo(bytes int) bool {
	return s.tx.Len() > 0 && s.tx.Bytes() < bytes && s.tx.Len() < corkPackets && !s.dev.options.NoService
}

// Posts of a burst are corked until the batch has burstBytes, which 15 packets with 4096 bytes of
// payload exceed: as many as fit a GSO group.
const (
	burstPosts   = 3                     // posts of a burst that leave at once
	burstGap     = 10 * time.Microsecond // maximum time between the starts of its posts, a system call included
	burstBytes   = 58 << 10
	minBurstSkip = 16   // posts that are not corked after a batch of a burst was left to the service
	maxBurstSkip = 4096 // the same after several in succession
)

// A burst is a run of posts in quick succession without a poll between them, as of a program that
// posts its unreliable messages one by one and polls when its send queue is full. No
// acknowledgement tells how many of them are in flight, so they are corked as long as the program
// polls after each burst.
type burst struct {
	polls uint64           // arbiter.polls at the last post
	last  reliability.Time // start of the last post
	posts int
	skip  int // posts left that are not corked
	skips int // value of skip after the last batch that was left to the service
}

// corkBurst reports whether the batch, to which q has just added, may be held back because the post
// belongs to a burst of an unreliable queue pair. A holder of the token that is awake sends it
// before it sleeps; if no goroutine polls, the service sends it.
func (s *shard) corkBurst(q *queuePair, now reliability.Time) bool {
	if !q.isUnreliable() {
		return false
	}
	b := &s.burst
	if polls := s.polls.Load(); polls != b.polls || now-b.last > reliability.Time(burstGap) {
		if b.posts > burstPosts {
			b.skips /= 2
		}
		b.polls, b.posts = polls, 0
	}
	b.last = now
	b.posts++
	if b.skip > 0 {
		b.skip--
		return false
	}
	if b.posts <= burstPosts || !s.canCorkUpTo(burstBytes) {
		return false
	}
	s.corked.Store(true)
	s.requestService()
	return !s.token.isAsleep()
}

// isUnreliable reports whether the messages of q are complete when they are sent, without those of
// the connection manager.
func (q *queuePair) isUnreliable() bool {
	t := q.core.Type()
	return t == verbs.UC || t == verbs.UD
}

// flushForgotten sends the batch that is held back, if the program has not polled: the next posts
// are not corked. It reports whether there was any batch or deferred acknowledgement.
func (s *shard) flushForgotten() bool {
	if s.corked.Load() {
		s.mu.Lock()
		b := &s.burst
		if b.posts > burstPosts {
			b.skips = min(max(2*b.skips, minBurstSkip), maxBurstSkip)
			b.skip, b.posts = b.skips, 0
		}
		s.mu.Unlock()
	}
	return s.flushDeferred()
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
