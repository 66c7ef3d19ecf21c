package sched

import "time"

// aloneTime is the time that a spinning waiter keeps its processor: the
// response time of a peer with a processor of its own. Afterwards it yields to
// other processes, one of which may be the peer.
const aloneTime = 4 * time.Microsecond

// minSharedYield is the minimum duration of a yield in which another thread has
// run.
const minSharedYield = 2 * time.Microsecond

// minHogYield is the minimum duration of a yield to a compute-bound thread.
// Yielding to some ranks in turn takes some hundred microseconds.
const minHogYield = 2 * time.Millisecond

// minHogSlice is the minimum time of each thread that has run in a yield to a compute-bound one.
// Many ranks that wait for one another run for a tenth of it each, but all of them together for as
// long as a compute-bound thread.
const minHogSlice = time.Millisecond

// AnotherRan reports whether another thread has run in a yield of this duration.
func AnotherRan(yield time.Duration) bool { return yield > minSharedYield }

// PeerMayHaveRun reports whether another thread has run, in a yield of this duration, that does not
// compute: the peer may share this processor.
func (s *Spinner) PeerMayHaveRun(yield time.Duration) bool {
	return AnotherRan(yield) && !s.hogged(yield)
}

// hogged reports whether a compute-bound thread has run in a yield of this duration.
func (s *Spinner) hogged(yield time.Duration) bool {
	switch {
	case yield < minHogYield:
		return false
	case s.YieldFunc != nil: // the number of runnable threads is not that of the simulation
		return true
	}
	return isHogSlice(yield, runnablePerProcessor())
}

// isHogSlice reports whether a yield was to a compute-bound thread, with a number of runnable threads
// for each processor, of which one has yielded.
func isHogSlice(yield time.Duration, runnable int) bool {
	return yield/time.Duration(max(1, runnable-1)) >= minHogSlice
}

// A waiter that shares its processor yields up to maxSharedYields times, for up to
// maxSharedSpin, before it sleeps: among processes that wait for one another, a
// yield is cheaper than a sleep and a wake-up.
const (
	maxSharedYields = 64
	maxSharedSpin   = 5 * time.Millisecond
)

// A Spin is one wait on a socket, which polls, yields to threads that share its
// processor, and then sleeps:
//
//	w := spinner.StartWait()
//	for !done {
//		found := poll()
//		extra := w.AfterSleep(found)
//		...                      // done: RecordHit if w.Spun
//		w.ExtendSpin(extra)
//		if w.KeepSpinning(found) {
//			w.YieldIfShared(found, false)
//		} else {
//			w.BeginSleep()
//			sleep()
//			w.EndSleep()
//		}
//	}
type Spin struct {
	s          *Spinner
	budget     int64 // nanoseconds without a hit until the waiter sleeps; 0 does not spin
	spun       bool  // the waiter spins, or has spun since the last sleep
	lastFound  int64 // time of the last hit, or start of the spin
	idle       int64 // nanoseconds since then
	yields     int   // consecutive yields without a hit
	afterSpin  bool  // a spin preceded the last sleep
	sleepBegan int64
	shortSleep bool // the last sleep, which no spin preceded, was shorter than a spin
}

// StartWait returns a wait that begins now.
func (s *Spinner) StartWait() Spin {
	budget := s.NextBudget()
	return Spin{s: s, budget: budget, spun: budget > 0, lastFound: s.clock()}
}

// Spun reports whether the waiter spins, or has spun since its last sleep.
func (p *Spin) Spun() bool { return p.spun }

// AfterSleep is called after each poll. It returns the duration for ExtendSpin of a spin after
// a short sleep has ended with a hit, else 0.
func (p *Spin) AfterSleep(found bool) int64 {
	short := p.shortSleep
	p.shortSleep = false
	if !short || !found {
		return 0
	}
	return p.s.RecordShortSleep()
}

// ExtendSpin makes the waiter spin for extra nanoseconds without a hit, if not 0.
func (p *Spin) ExtendSpin(extra int64) {
	if extra > 0 {
		p.budget, p.spun = extra, true
	}
}

// KeepSpinning reports whether the waiter polls again after a poll, rather than sleep.
func (p *Spin) KeepSpinning(found bool) bool {
	p.idle = 0
	if found {
		p.yields = 0
	}
	if p.budget > 0 {
		if now := p.s.clock(); found {
			p.lastFound = now
		} else {
			p.idle = now - p.lastFound
		}
	}
	sharing := p.budget > 0 && p.s.Shared && p.yields < maxSharedYields && p.idle < int64(maxSharedSpin)
	return found || p.idle < p.budget || sharing
}

// YieldIfShared yields to other threads after a poll without a hit, if some may need this
// processor or others is set. The Spinner's Shared then reports whether any ran; while
// others run, a waiter yields early, because its peer may be one of them. If a thread hogs
// the processor, the waiter spins no longer: a sleeper is scheduled first when data
// arrives, and a yielding thread last.
func (p *Spin) YieldIfShared(found, others bool) {
	if found || !others && !p.s.Shared && p.idle <= int64(aloneTime) {
		return
	}
	p.yields++
	took := p.s.TimedYield()
	p.s.Shared = p.s.PeerMayHaveRun(took)
	if AnotherRan(took) && !p.s.Shared {
		p.s.RecordHog()
		p.budget, p.spun = 0, false
	}
}

// BeginSleep is called before the waiter sleeps. Later polls do not spin, unless the sleep
// was short.
func (p *Spin) BeginSleep() {
	if p.afterSpin = p.spun; p.afterSpin {
		p.s.RecordMiss()
	}
	p.budget, p.spun = 0, false
	p.sleepBegan = p.s.clock()
}

// EndSleep is called after the sleep.
func (p *Spin) EndSleep() {
	p.shortSleep = !p.afterSpin && p.s.clock()-p.sleepBegan < p.s.budgetMax
}
