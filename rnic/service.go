package rnic

import (
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/sched"
)

// Spinning of the service.
const (
	serviceSpinTime         = 50 * time.Microsecond  // spin after a packet before the service blocks
	servicePollsBeforeYield = 32                     // empty polls after which the service yields to other threads
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
	spin := startServiceSpin(&s.serviceSpinner, int64(s.dev.now()))
	handled := true
	for polls := 1; !mustStop(); polls++ {
		if s.pollForService() > 0 {
			spin.restart(int64(s.dev.now()), polls > 1)
			polls = 0
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
		if spin.keepSpinning(int64(s.dev.now()), polls) {
			continue
		}
		if s.sleepInSocket(mustStop) {
			return
		}
		spin = serviceSpin{Spinner: &s.serviceSpinner, budget: s.serviceSpinner.NextBudget()}
	}
}

// A serviceSpin is the spin of the service after a packet. It ends early if another thread runs
// during a yield: that thread may be the one that the service waits for, and the kernel prefers
// the service's short slice, so that spinning would keep it from the processor. A sleep yields the
// processor at once, and a packet returns it.
type serviceSpin struct {
	*sched.Spinner
	budget int64 // nanoseconds without a packet until the service sleeps; 0 does not spin
	until  int64 // end of the spin, or 0 if the service does not spin
}

// startServiceSpin returns the spin of a service that has just taken the token.
func startServiceSpin(s *sched.Spinner, now int64) serviceSpin {
	spin := serviceSpin{Spinner: s, budget: s.NextBudget()}
	spin.restart(now, false)
	return spin
}

// restart is called after a poll with packets; again is set if an empty poll preceded it.
func (p *serviceSpin) restart(now int64, again bool) {
	if again && p.until != 0 {
		p.RecordHit()
	}
	p.until = 0
	if p.budget > 0 {
		p.until = now + p.budget
	}
}

// keepSpinning reports whether the service polls again after that many empty polls, rather than sleep.
func (p *serviceSpin) keepSpinning(now int64, polls int) bool {
	switch {
	case p.until == 0:
		return false
	case now >= p.until:
		p.RecordMiss()
		return false
	}
	if polls >= servicePollsBeforeYield && polls%8 == 0 && sched.AnotherRan(p.TimedYield()) {
		p.RecordHog()
		p.budget, p.until = 0, 0
		return false
	}
	return true
}
