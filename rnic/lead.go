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
	l := s.newLead()
	for polls := 0; ; polls++ {
		n := 0
		if polls > 0 || !polled || l.Spun() && !s.leaderSpinner.Shared { // with a shared processor, yield first
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
	l.s.yieldBeforeSleep(l.appRan)
	l.appRan = false
	l.BeginSleep()
	w.watchContext()
	displaced = l.s.sleepInSocket(w.isDone)
	l.EndSleep()
	return displaced
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
