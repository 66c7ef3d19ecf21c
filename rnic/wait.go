package rnic

import (
	"context"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/sched"
)

// pollShard reads the socket of s once for a poller and returns the number of
// packets handled; 0 if another goroutine holds the token.
func (d *Device) pollShard(s *shard, c caller) int {
	s.polls.Add(1)
	if !s.token.acquire(tokenPolling) {
		s.claimToken()
		return 0
	}
	n := s.pollSocket(c)
	idle := s.emptyPolls
	if d.options.NoService {
		s.releaseToken()
	} else {
		// Followers stay parked while pollers are active: the monitor detects
		// when polling ends, and the service hands the token to a follower.
		s.token.release()
	}
	if n == 0 && idle > yieldAfter {
		s.yieldWhenIdle(idle)
	}
	return n
}

// yieldAfter is the number of consecutive empty reads, of about 0.25 us each,
// after which a poller yields.
const yieldAfter = 64

// yieldWhenIdle yields to other goroutines and, as there may be more threads
// than processors, to other threads.
func (s *shard) yieldWhenIdle(idle int) {
	if idle%16 == 0 {
		runtime.Gosched()
	}
	if idle%4 == 0 {
		sched.Yield()
	}
}

// A waiter is one call of Wait or PollWait.
type waiter struct {
	ctx        context.Context
	cq         *completionQueue
	completion bool        // PollWait: satisfied by a completion; else by the armed event
	baton      bool        // has received the baton and not yet tried for the token
	stopWatch  func() bool // stops watching the context
}

// wait blocks until the waiter is satisfied, the context ends or the queue
// fails. The first waiter takes the token and leads, also asleep in the socket;
// others follow, parked until a wake-up or the baton.
func (w *waiter) wait() error {
	w.cq.addWaiter()
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
			w.waitForWake()
			continue
		}
		if !displaced && s.token.acquire(tokenLeading) {
			w.baton = false
			s.polls.Add(1)
			s.leader.Store(w.cq)
			displaced = w.serveAsLeader(s, polled) && !w.cq.dev.options.NoService
			s.leader.Store(nil)
			s.flushCorked() // posts of leaveToLeader
			s.releaseToken()
			continue
		}
		if !displaced && s.multiCPU && s.token.isServing() && s.requestHandover(w.isDone) {
			continue
		}
		w.waitAsFollower(s, displaced)
		displaced = false
	}
}

// consumeEvent consumes the event of a Wait, or reports for a PollWait whether
// a completion is queued.
func (w *waiter) consumeEvent() bool {
	if w.completion {
		return w.cq.ready.Load() > 0
	}
	return w.cq.eventPending.Load() && w.cq.eventPending.CompareAndSwap(true, false)
}

// isDone reports whether the waiter is satisfied or must return an error.
func (w *waiter) isDone() bool {
	c := w.cq
	return !w.completion && c.eventPending.Load() || w.completion && c.ready.Load() > 0 ||
		c.failed.Load() || c.dev.unusable.Load() || w.ctx.Err() != nil
}

// leaderAloneTime is the time that a spinning leader keeps its processor: the
// response time of a peer with a processor of its own. Afterwards it yields to
// other processes, one of which may be the peer.
const leaderAloneTime = 4 * time.Microsecond

// minSharedYield is the minimum duration of a yield in which another thread has
// run.
const minSharedYield = 2 * time.Microsecond

// minHogYield is the minimum duration of a yield to a compute-bound thread.
// Yielding to many ranks in turn takes some hundred microseconds.
const minHogYield = 2 * time.Millisecond

// yieldToThreads yields to other threads and records in cpuShared whether any
// ran; while others run, a leader yields early, because its peer may be one of
// them. It reports whether a thread hogged the processor: then a sleeper is
// scheduled first when data arrives, and a yielding thread last.
func (s *shard) yieldToThreads() (hogged bool) {
	took := s.timedYield()
	s.cpuShared = took > minSharedYield && took < minHogYield
	return took >= minHogYield
}

// timedYield yields to other threads and returns how long they ran.
func (s *shard) timedYield() time.Duration {
	began := s.dev.now()
	sched.Yield()
	return time.Duration(s.dev.now() - began)
}

// A leader that shares its processor yields up to maxSharedYields times, for up to
// maxSharedSpin, before it sleeps: among processes that wait for one another, a
// yield is cheaper than a sleep and a wake-up.
const (
	maxSharedYields = 64
	maxSharedSpin   = 5 * time.Millisecond
)

// serveAsLeader reads the socket of s until w is done or another goroutine
// requests the token, and reports the latter. It spins, yields to processes that
// share its processor, and then sleeps in the socket. The token is held. polled
// reports whether the caller has just polled.
func (w *waiter) serveAsLeader(s *shard, polled bool) (displaced bool) {
	c := caller{cq: w.cq}
	budget := s.leaderSpinner.budget() // nanoseconds without a packet until the leader sleeps; 0 does not spin
	spun := budget > 0                 // the leader spins, or has spun since the last sleep
	began := int64(s.dev.now())        // start of the spin, or time of its last packet
	yields := 0                        // consecutive yields without a packet
	shortSleep := false                // the last sleep, which no spin preceded, was shorter than a spin
	appRan := true                     // the application may have run since the last sleep
	for polls := 0; ; polls++ {
		n := 0
		if polls > 0 || !polled || spun && !s.cpuShared { // with a shared processor, yield first
			n = s.pollSocket(c)
		}
		extraSpin := int64(0) // spin budget after a short sleep
		if shortSleep && n > 0 {
			extraSpin = s.leaderSpinner.recordShortSleep()
		}
		shortSleep = false
		if w.isDone() {
			if spun {
				s.leaderSpinner.recordHit()
			} else {
				s.flushDeferred() // no poll may follow for long
			}
			return false
		}
		if extraSpin > 0 {
			budget, spun = extraSpin, true
		}
		if s.token.hasSeizers() {
			return true
		}
		idle := int64(0)
		if n == 0 && budget > 0 {
			idle = int64(s.dev.now()) - began
		}
		if n > 0 { // restart the spin
			yields = 0
			if budget > 0 {
				began = int64(s.dev.now())
			}
		}

		// Spin: poll again, after a yield if others may need this processor.
		sharing := budget > 0 && s.cpuShared && yields < maxSharedYields && idle < int64(maxSharedSpin)
		if n > 0 || idle < budget || sharing {
			if s.followers.Load() > 0 || polls%64 == 63 { // run waiters whose completions have arrived
				runtime.Gosched()
			}
			if n == 0 && (s.followers.Load() > 0 || s.cpuShared || idle > int64(leaderAloneTime)) {
				yields++
				if s.yieldToThreads() {
					s.leaderSpinner.recordHog()
					budget, spun = 0, false
				}
			}
			continue
		}

		// Sleep in the socket.
		hadSpun := spun
		if spun {
			s.leaderSpinner.recordMiss()
			spun = false
		}
		budget = 0
		s.yieldBeforeSleep(appRan)
		appRan = false
		w.watchContext()
		asleep := int64(s.dev.now())
		if s.sleepInSocket(w.isDone) {
			return true
		}
		shortSleep = !hadSpun && int64(s.dev.now())-asleep < s.leaderSpinner.budgetMax
	}
}

// leaderYieldInterval is the maximum time that a leader sleeps repeatedly
// without calling the Go scheduler. The runtime's monitor takes a goroutine
// that makes only system calls for one blocked in a single call: after 10 ms it
// would retake the processor in each call and check it every 20 us.
const leaderYieldInterval = 5 * time.Millisecond

// yieldBeforeSleep runs other goroutines before a leader sleeps in the socket,
// if any may be runnable: the application has run, a waiter was woken, or
// leaderYieldInterval has passed. A goroutine left in the run queue would be
// stuck behind the blocking system call; unless another processor of the
// runtime is idle, the runtime's monitor frees it after up to 20 ms. The token
// is held.
func (s *shard) yieldBeforeSleep(appRan bool) {
	now, wakeups := int64(s.dev.now()), s.dev.wakeups.Load()
	if appRan || wakeups != s.seenWakeups || now-s.lastLeaderYield > int64(leaderYieldInterval) {
		s.seenWakeups, s.lastLeaderYield = wakeups, now
		runtime.Gosched()
		runtime.Gosched()
	}
}

// watchContext makes the end of the context wake the sleeping leader of any
// shard.
func (w *waiter) watchContext() {
	if w.stopWatch == nil && w.ctx.Done() != nil {
		w.stopWatch = context.AfterFunc(w.ctx, w.cq.dev.wakeLeaders)
	}
}

// finish ends the wait and passes on a baton that the waiter did not use.
func (w *waiter) finish() {
	w.cq.removeWaiter()
	if w.stopWatch != nil {
		w.stopWatch()
	}
	if w.baton {
		w.cq.shard.Load().offerBaton()
	}
}

// waitAsFollower parks until a wake-up, the end of the context, or the baton.
// Unless displaced is set, it returns at once if the token has become free.
func (w *waiter) waitAsFollower(s *shard, displaced bool) {
	s.followers.Add(1)
	defer s.followers.Add(-1)
	if s.token.isServing() {
		s.displaceSleeper()
	}
	wake := w.cq.parkWaiter()
	defer w.cq.unparkWaiter(wake)
	if !displaced && s.token.isFree() || w.isDone() {
		return
	}
	select {
	case <-wake:
	case <-s.baton:
		w.baton = true
	case <-w.ctx.Done():
	}
}

// waitForWake parks until a wake-up or the end of the context. It never leads:
// the socket is left to waiters for traffic and to the service.
func (w *waiter) waitForWake() {
	wake := w.cq.parkWaiter()
	defer w.cq.unparkWaiter(wake)
	if w.isDone() {
		return
	}
	select {
	case <-wake:
	case <-w.ctx.Done():
	}
}
