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
	slice := sched.OpenSlice()
	defer func() {
		if slice.Restore() { // so other goroutines may use the thread; otherwise it exits
			runtime.UnlockOSThread()
		}
	}()
	for range s.serviceStart {
		s.serveSocket(slice)
		s.releaseToken()
		s.serviceStopped <- struct{}{}
	}
}

// serveSocket reads the socket until the token is recalled by a frequent poller
// or requested by a waiter. The token is held. The thread has the slice.
func (s *shard) serveSocket(slice *sched.Slice) {
	mustStop := func() bool { return s.dev.unusable.Load() || s.token.isRecalled() || s.token.hasSeizers() }
	spin := serviceSpin{Spinner: &s.serviceSpinner, mover: &s.serviceMover, slice: slice}
	spin.startBudget()
	spin.restart(int64(s.dev.now()), false)
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
		slice.SetShort(true)
		if s.sleepInSocket(mustStop) {
			return
		}
		spin.startBudget()
	}
}

// A serviceSpin is the spin of the service after a packet. It yields to other threads, first
// after some empty polls, and after each as long as others run that return the processor soon:
// they are peers, or services like this one, and a yield is cheaper than a sleep and a wake-up
// of an idle processor. A thread that computes ends the spin: a sleep yields the processor at
// once, and a packet returns it.
//
// Among threads that yield to one another the service must have slices as long as theirs: the
// kernel would prefer short ones to the peer, which has yielded a long one, so that the service
// would keep the processor from it for its whole spin.
type serviceSpin struct {
	*sched.Spinner
	*mover
	slice  *sched.Slice
	budget int64 // nanoseconds without a packet until the service sleeps; 0 does not spin
	until  int64 // end of the spin, or 0 if the service does not spin
}

// startBudget sets the duration of the next spin. The service does not spin until restart.
func (p *serviceSpin) startBudget() { p.budget, p.until = p.NextBudget(), 0 }

// restart is called after a poll with packets; again is set if an empty poll preceded it. The
// packets have been handled, and the service may move to another processor.
func (p *serviceSpin) restart(now int64, again bool) {
	if p.recordPacket(now) {
		sched.MoveThread()
	}
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
	p.recordYield(0)
	switch {
	case p.until == 0:
		return false
	case now >= p.until:
		p.RecordMiss()
		return false
	case !p.Shared && (polls < servicePollsBeforeYield || polls%8 != 0):
		return true
	}
	p.slice.SetShort(false)
	took := p.TimedYield()
	p.recordYield(took)
	p.Shared = sched.AnotherRan(took) && took < serviceHogYield
	if took >= serviceHogYield {
		p.RecordHog()
		p.budget, p.until = 0, 0
		return false
	}
	return true
}
