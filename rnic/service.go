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
	serviceYieldInterval    = 100 * time.Microsecond // maximum delay of goroutines that no wake-up of this device has made runnable; a yield costs two thread switches
)

// runService is the service goroutine: the processor of the adapter for
// programs that compute, sleep or do not poll. It reads the socket whenever the
// monitor passes it the token, and releases the token when another goroutine
// polls or waits.
//
// It has its own thread, with a short scheduler slice, and blocks in a system
// call; docs/engine.md says why.
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
			s.yieldToWoken(false, serviceYieldInterval)
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
