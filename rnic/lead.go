package rnic

import (
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/sched"
)

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
	l := lead{s: s, budget: s.leaderSpinner.budget(), lastPacket: int64(s.dev.now()), appRan: true}
	for polls := 0; ; polls++ {
		n := 0
		if polls > 0 || !polled || l.budget > 0 && !s.cpuShared { // with a shared processor, yield first
			n = s.pollSocket(c)
		}
		extra := int64(0)
		if l.shortSleep && n > 0 {
			extra = s.leaderSpinner.recordShortSleep()
		}
		l.shortSleep = false
		if w.isDone() {
			if l.budget > 0 {
				s.leaderSpinner.recordHit()
			} else {
				s.flushDeferred() // no poll may follow for long
			}
			return false
		}
		if s.token.hasSeizers() {
			return true
		}
		if extra > 0 {
			l.budget = extra
		}
		if !l.keepSpinning(n, polls) && l.blockInSocket(w) {
			return true
		}
	}
}

// A lead is the state of a leader from taking the token to releasing it.
type lead struct {
	s          *shard
	budget     int64 // nanoseconds without a packet until the leader sleeps; 0 does not spin
	lastPacket int64 // time of the last packet, or start of the spin
	yields     int   // consecutive yields without a packet
	shortSleep bool  // the last sleep, which no spin preceded, was shorter than a spin
	appRan     bool  // the application may have run since the last sleep
}

// keepSpinning reports whether the leader polls again after a poll with n packets. If so,
// it has yielded if other goroutines or threads may need this processor.
func (l *lead) keepSpinning(n, polls int) bool {
	if n == 0 && l.budget == 0 {
		return false
	}
	s, now := l.s, int64(l.s.dev.now())
	if n > 0 {
		l.yields, l.lastPacket = 0, now
	}
	idle := now - l.lastPacket
	sharing := s.cpuShared && l.yields < maxSharedYields && idle < int64(maxSharedSpin)
	if n == 0 && idle >= l.budget && !sharing {
		return false
	}
	following := s.followers.Load() > 0
	if following || polls%64 == 63 { // run waiters whose completions have arrived
		runtime.Gosched()
	}
	if n == 0 && (following || s.cpuShared || idle > int64(leaderAloneTime)) {
		l.yields++
		if s.yieldToThreads() {
			s.leaderSpinner.recordHog()
			l.budget = 0
		}
	}
	return true
}

// blockInSocket blocks in the socket, and reports whether another goroutine requested the
// token. Later polls do not spin, unless the sleep was short.
func (l *lead) blockInSocket(w *waiter) (displaced bool) {
	s, afterSpin := l.s, l.budget > 0
	if afterSpin {
		s.leaderSpinner.recordMiss()
	}
	if s.yieldToWoken(l.appRan, leaderYieldInterval) {
		runtime.Gosched() // the scheduler may have taken this goroutine from its global queue first
	}
	l.budget, l.appRan = 0, false
	w.watchContext()
	began := int64(s.dev.now())
	displaced = s.sleepInSocket(w.isDone)
	l.shortSleep = !afterSpin && int64(s.dev.now())-began < s.leaderSpinner.budgetMax
	return displaced
}

// leaderYieldInterval is the maximum time that a leader sleeps repeatedly
// without calling the Go scheduler: after 10 ms without, the runtime's monitor
// would retake the processor in each system call.
const leaderYieldInterval = 5 * time.Millisecond

// yieldToWoken runs other goroutines before the holder of the token sleeps in
// the socket, if any may be runnable: the caller knows of one, a waiter was woken,
// or the given time has passed. A goroutine left in the run queue would be stuck
// behind the blocking system call; unless another processor of the runtime is
// idle, the runtime's monitor frees it after up to 20 ms. It reports whether it has
// called the scheduler.
func (s *shard) yieldToWoken(known bool, interval time.Duration) bool {
	now, wakeups := int64(s.dev.now()), s.dev.wakeups.Load()
	if !known && wakeups == s.seenWakeups && now-s.lastYield <= int64(interval) {
		return false
	}
	s.seenWakeups, s.lastYield = wakeups, now
	runtime.Gosched()
	return true
}
