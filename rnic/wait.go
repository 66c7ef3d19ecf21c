package rnic

import (
	"context"
	"runtime"

	"github.com/softrnic/softrnic/internal/vtime"
)

// pollShard reads the socket of s once for a poller and returns the number of
// packets handled; 0 if another goroutine holds the token.
func (d *Device) pollShard(s *shard, c caller) int {
	s.polls.Add(1)
	if !s.token.acquire(tokenPolling) {
		s.claimToken()
		return 0
	}
	n, idle := s.pollOnce(c)
	if shared := s.pollersShare.Load(); n == 0 && (shared || idle > yieldAfter) { // there may be more threads than processors
		if idle%16 == 0 {
			runtime.Gosched()
		}
		if shared || idle%4 == 0 {
			s.yieldPoller(shared)
		}
	}
	return n
}

// yieldAfter is the number of consecutive empty reads, of about 0.25 us each,
// after which a poller yields.
const yieldAfter = 64

// yieldPoller yields to other threads and records whether any ran: then the peer may
// be one of them, and pollers yield after each empty read until none runs.
func (s *shard) yieldPoller(shared bool) {
	if ran := s.leaderSpinner.PeerMayHaveRun(s.leaderSpinner.TimedYield()); ran != shared {
		s.pollersShare.Store(ran)
	}
}

// pollOnce reads the socket for a poller, which holds the token, and releases the
// token, also if the program's log handler panics. It returns the numbers of
// packets and of consecutive empty reads. Followers stay parked while pollers are
// active: the monitor detects when polling ends, and the service hands the token
// to a follower.
func (s *shard) pollOnce(c caller) (n, idle int) {
	defer func() {
		s.token.release()
		if s.dev.options.NoService {
			s.offerBaton()
		}
	}()
	n = s.pollSocket(c)
	return n, s.emptyPolls
}

// A waiter is one call of Wait, PollWait or WaitUntil.
type waiter struct {
	ctx        context.Context
	cq         *completionQueue
	completion bool        // PollWait: satisfied by a completion; else by the armed event
	ready      func() bool // WaitUntil: also satisfied when it reports true; or nil
	baton      bool        // has received the baton and not yet tried for the token
	stopWatch  func() bool // stops watching the context
}

// wait blocks until the waiter is satisfied, the context ends or the queue
// fails. The first waiter takes the token and leads, also asleep in the socket;
// others follow, parked until a wake-up or the baton.
func (w *waiter) wait() error {
	if vtime.OnSimulatedHost() {
		simulated := *w // otherwise each waiter would be allocated
		return simulated.waitSimulated()
	}
	w.cq.blockedCalls.Add(1)
	w.cq.dev.startWaitWatch()
	if w.completion {
		w.cq.pollWaiters.Add(1)
	}
	defer w.finish()
	displaced := false // another goroutine took the token
	for polled := true; ; polled = false {
		if w.consumeEvent() {
			return nil
		}
		if err := w.cq.checkUsable("wait for CQ"); err != nil {
			return err
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		s := w.cq.shard.Load()
		if w.cq.managementOnly.Load() && !w.cq.dev.options.NoService {
			w.parkUnlessDone(s, nil, true) // it never leads: the socket is left to waiters for traffic and to the service
			continue
		}
		if !displaced && s.token.acquire(tokenLeading) {
			displaced = w.lead(s, polled) && !w.cq.dev.options.NoService
			continue
		}
		if !displaced && s.multiCPU && s.token.isServing() && s.requestHandover(w.isDone) {
			continue
		}
		w.waitAsFollower(s, displaced)
		displaced = false
	}
}

// waitSimulated is wait on a simulated host. Unless the device's hooks let waiters poll, the
// simulator does.
func (w *waiter) waitSimulated() error {
	s, polls := w.cq.shard.Load(), w.cq.dev.options.hooks.Yield != nil
	for polled := true; !w.consumeEvent(); polled = false {
		if err := w.cq.checkUsable("wait for CQ"); err != nil {
			return err
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if polls && s.token.acquire(tokenLeading) {
			w.lead(s, polled)
			continue
		}
		vtime.WaitUntil(func() bool { return w.isDone() || polls && s.token.isFree() })
	}
	return nil
}

// lead serves the socket of s as the leader and releases the token, which the
// caller holds, also if a method of the program's context or its log handler
// panics. It reports whether another goroutine requested the token.
func (w *waiter) lead(s *shard, polled bool) (displaced bool) {
	defer s.releaseToken()
	w.baton = false
	s.polls.Add(1)
	s.leader.Store(w.cq)
	defer func() {
		s.leader.Store(nil)
		s.flushCorked() // posts of leaveToLeader
	}()
	return w.serveAsLeader(s, polled)
}

// consumeEvent consumes the event of a Wait, or reports for a PollWait whether
// a completion is queued.
func (w *waiter) consumeEvent() bool {
	if w.completion {
		return w.hasCompletion()
	}
	return w.cq.eventPending.Load() && w.cq.eventPending.CompareAndSwap(true, false)
}

// hasCompletion reports whether a PollWait or WaitUntil is satisfied.
func (w *waiter) hasCompletion() bool { return w.cq.ready.Load() > 0 || w.ready != nil && w.ready() }

// isDone reports whether the waiter is satisfied or must return an error.
func (w *waiter) isDone() bool {
	c := w.cq
	return w.completion && w.hasCompletion() || !w.completion && c.eventPending.Load() ||
		c.failed.Load() || c.dev.unusable.Load() || w.ctx.Err() != nil
}

// watchContext makes the end of the context wake the sleeping leader of any
// shard. A simulated host wakes it whenever other code of the host has run.
func (w *waiter) watchContext() {
	if w.stopWatch == nil && w.ctx.Done() != nil && !vtime.OnSimulatedHost() {
		w.stopWatch = context.AfterFunc(w.ctx, w.cq.dev.wakeLeaders)
	}
}

// finish ends the wait and passes on a baton that the waiter did not use.
func (w *waiter) finish() {
	w.cq.blockedCalls.Add(-1)
	if w.completion {
		w.cq.pollWaiters.Add(-1)
	}
	if w.stopWatch != nil {
		w.stopWatch()
	}
	if w.baton {
		w.cq.shard.Load().offerBaton()
	}
}

// waitAsFollower parks as a follower; see parkUnlessDone.
func (w *waiter) waitAsFollower(s *shard, displaced bool) {
	s.followers.Add(1)
	defer s.followers.Add(-1)
	if s.token.isServing() {
		s.wakeHolder(s.token.displace())
	}
	w.parkUnlessDone(s, s.baton, displaced)
}

// parkUnlessDone parks until a wake-up, the end of the context, or the baton. It
// returns at once if the token has become free, unless displaced is set.
func (w *waiter) parkUnlessDone(s *shard, baton <-chan struct{}, displaced bool) {
	wake := w.cq.parkWaiter()
	defer w.cq.unparkWaiter(wake)
	if w.ready != nil {
		w.cq.dev.memoryWaiters.add(wake)
		defer w.cq.dev.memoryWaiters.remove(wake)
	}
	if !displaced && s.token.isFree() || w.isDone() {
		return
	}
	select {
	case <-wake:
	case <-baton:
		w.baton = true
	case <-w.ctx.Done():
	}
}
