package rnic

import (
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/sched"
)

// serveAsLeader reads the socket of s until w is done or another goroutine
// requests the token, and reports the latter. It spins, yields to processes that
// share its processor, and then sleeps in the socket. The token is held. polled
// reports whether the caller has just polled.
func (w *waiter) serveAsLeader(s *shard, polled bool) (displaced bool) {
	c := caller{cq: w.cq}
	l, beforePoll := s.newLead(), w.cq.dev.options.hooks.BeforePoll
	for polls := 0; ; polls++ {
		n := 0
		if polls > 0 || !polled || l.Spun() && !s.leaderSpinner.Shared { // with a shared processor, yield first
			if beforePoll != nil {
				beforePoll()
			}
			n = s.pollSocket(c)
		}
		extra := l.AfterSleep(n > 0)
		if w.isDone() {
			l.recordSatisfied()
			return false
		}
		if s.token.hasSeizers() {
			return true
		}
		l.ExtendSpin(extra)
		if !l.keepSpinning(n, polls) && l.blockInSocket(w) {
			return true
		}
	}
}

// A lead is the state of a leader from taking the token to releasing it.
type lead struct {
	s *shard
	sched.Spin
	appRan bool // the application may have run since the last sleep
}

func (s *shard) newLead() lead {
	return lead{s: s, Spin: s.leaderSpinner.StartWait(), appRan: true}
}

// recordSatisfied records how the waiter was satisfied.
func (l *lead) recordSatisfied() {
	if l.Spun() {
		l.s.leaderSpinner.RecordHit()
	} else {
		l.s.flushDeferred() // no poll may follow for long
	}
}

// keepSpinning reports whether the leader polls again after a poll with n packets. If so,
// it has yielded if other goroutines or threads may need this processor.
func (l *lead) keepSpinning(n, polls int) bool {
	if !l.KeepSpinning(n > 0) {
		return false
	}
	following := l.s.followers.Load() > 0
	if following || polls%64 == 63 { // run waiters whose completions have arrived
		runtime.Gosched()
	}
	l.YieldIfShared(n > 0, following)
	return true
}

// blockInSocket blocks in the socket, and reports whether another goroutine requested the
// token.
func (l *lead) blockInSocket(w *waiter) (displaced bool) {
	if l.s.yieldToWoken(l.appRan, leaderYieldInterval) {
		runtime.Gosched() // the scheduler may have taken this goroutine from its global queue first
	}
	l.appRan = false
	l.BeginSleep()
	w.watchContext()
	if w.ready != nil { // the request that writes the memory may be handled elsewhere
		w.cq.dev.memoryWaiters.add(nil)
		defer w.cq.dev.memoryWaiters.remove(nil)
	}
	displaced = l.s.sleepInSocket(w.isDone)
	l.EndSleep()
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
