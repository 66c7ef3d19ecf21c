package rnic

import (
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/sched"
)

// Spinning of the service.
const (
	serviceSpin             = 50 * time.Microsecond  // spin after a packet before the service blocks
	servicePollsBeforeYield = 32                     // empty polls after which the service yields to other threads
	serviceHogYield         = 200 * time.Microsecond // minimum duration of a yield to a compute-bound thread
)

// runService is the service goroutine: the processor of the adapter for
// programs that compute, sleep or do not poll. It reads the socket whenever the
// monitor passes it the token, and releases the token when another goroutine
// polls or waits.
//
// It has its own thread: a blocking system call returns sooner than Go's
// network poller, the kernel keeps the threads of the program and of the
// service on separate processors, which scheduling goroutines would not, and a
// short scheduler slice can be set for the thread.
func (s *shard) runService() {
	defer close(s.serviceDone)
	runtime.LockOSThread()
	undo := sched.SetShortSlice()
	defer func() {
		if undo() { // restored, so other goroutines may use the thread; otherwise it exits
			runtime.UnlockOSThread()
		}
	}()
	for range s.serviceStart {
		s.serveSocket()
		s.releaseToken()
		s.serviceStopped <- struct{}{}
	}
}

// serveSocket reads the socket until the token is recalled by a frequent poller
// or requested by a waiter. The token is held.
func (s *shard) serveSocket() {
	mustStop := func() bool { return s.dev.unusable.Load() || s.token.isRecalled() || s.token.hasSeizers() }
	spin := s.serviceSpinner.NextBudget()
	spinUntil := int64(s.dev.now()) + spin
	handled := true
	for polls := 1; !mustStop(); polls++ {
		if s.pollForService() > 0 {
			if polls > 1 && spinUntil != 0 {
				s.serviceSpinner.RecordHit()
			}
			spinUntil, polls = int64(s.dev.now())+spin, 0
			handled = true
			continue
		}
		if s.followers.Load() > 0 {
			return
		}
		if handled {
			handled = false
			s.yieldToWoken()
			continue
		}
		if int64(s.dev.now()) < spinUntil {
			if polls >= servicePollsBeforeYield && polls%8 == 0 && s.serviceSpinner.TimedYield() >= serviceHogYield {
				s.serviceSpinner.RecordHog()
				spin, spinUntil = 0, 0
			}
			continue
		}
		if s.sleepInSocket(mustStop) {
			return
		}
		spin, spinUntil = s.serviceSpinner.NextBudget(), 0
	}
}

// serviceYieldInterval is the maximum delay of runnable goroutines that no
// wake-up of this device accounts for.
const serviceYieldInterval = 100 * time.Microsecond

// yieldToWoken runs the goroutines that a packet has made runnable. If the
// application computes, they are in the run queue of this thread's processor,
// which is blocked along with the thread by the next system call. Goroutines
// may be runnable for other reasons, so it yields at least every
// serviceYieldInterval; not always, because a yield costs two thread switches.
func (s *shard) yieldToWoken() {
	now, wakeups := int64(s.dev.now()), s.dev.wakeups.Load()
	if wakeups != s.seenWakeups || now-s.lastServiceYield > int64(serviceYieldInterval) {
		s.seenWakeups, s.lastServiceYield = wakeups, now
		runtime.Gosched()
	}
}
