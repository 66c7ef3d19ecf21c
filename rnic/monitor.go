package rnic

import (
	"sync/atomic"
	"time"
)

// Sleeps of the monitor.
const (
	minMonitorSleep  = 50 * time.Microsecond  // first sleep, while others poll
	minPollGap       = 20 * time.Microsecond  // mean interval of polls above which the service is needed
	maxMonitorSleep  = 2 * time.Millisecond   // longest sleep, after long polling
	requestDelay     = 300 * time.Microsecond // delay after requestService, unless a poll comes first
	maxWatchedSleeps = 6                      // sleeps in sleepWhileActive with an active program, after which it is no longer used
	sleepsBeforePark = 5                      // sleeps behind a sleeping leader before the monitor parks
)

// runMonitor is the monitor goroutine: it detects that no goroutine polls the
// socket and then hands the token to the service. It has no thread of its own and
// sleeps in the Go runtime; docs/engine.md says why.
//
// The sleep grows by an eighth each time the service was not needed, because
// each check costs a process that shares its processor a context switch, and is
// reset once the service had work. While work is left to the service the
// monitor does not sleep long, and requestService ends a long sleep.
func (s *shard) runMonitor() {
	defer close(s.serviceStart)
	m := monitorLoop{s: s, seen: s.polls.Load(), short: newShortSleeper(), long: time.NewTimer(0)}
	m.resetSleeps()
	defer m.short.close()
	defer m.long.Stop()
	for !s.dev.unusable.Load() {
		polls, stopped := m.checkPolls()
		if stopped && s.token.acquire(tokenServing) {
			m.runService()
			continue
		}
		if polls == m.seen && s.token.isAsleep() {
			if m.behindLeader++; m.behindLeader > sleepsBeforePark {
				s.blockMonitor(monitorParked, func() bool { return s.token.isAsleep() && !s.dev.unusable.Load() }, nil)
				m.behindLeader = 0
			}
		}
		m.nextSleep = min(m.nextSleep+m.nextSleep/8, maxMonitorSleep)
		m.seen, m.slept = polls, m.nextSleep
		if m.sleepUnlessRequested() {
			m.sleepBeforeService()
		}
		if s.flushForgotten() {
			m.nextSleep = minMonitorSleep
		}
	}
}

// monitorLoop is the state that the monitor goroutine has to itself.
type monitorLoop struct {
	s             *shard
	seen          uint64        // number of polls at the last check
	slept         time.Duration // last sleep
	nextSleep     time.Duration
	requestSleep  time.Duration // next sleep while work is left to the service
	behindLeader  int           // sleeps without a poll while a leader is asleep in the socket
	watchedSleeps int           // sleeps left that end early if the program shows no activity
	short         *shortSleeper
	long          *time.Timer
}

func (m *monitorLoop) resetSleeps() {
	m.nextSleep, m.slept, m.requestSleep, m.behindLeader = minMonitorSleep, minMonitorSleep, requestDelay, 0
}

// checkPolls returns the number of polls, and whether polling has stopped. Polls
// that were few since the last check are checked again after a short sleep: the
// whole process may have had no processor.
func (m *monitorLoop) checkPolls() (polls uint64, stopped bool) {
	polls = m.s.polls.Load()
	if polls-m.seen >= uint64(m.slept/minPollGap) {
		return polls, false
	}
	if (polls != m.seen || m.slept > minMonitorSleep) && m.s.token.isFree() {
		m.seen = polls
		m.short.sleep(minMonitorSleep)
		polls = m.s.polls.Load()
	}
	return polls, polls == m.seen
}

// runService passes the token to the service and waits until it gives it back.
func (m *monitorLoop) runService() {
	s := m.s
	s.serviceRequested.Store(false) // the service does it now
	s.flushForgotten()
	began := s.dev.now()
	s.serviceStart <- struct{}{} // passes the token
	<-s.serviceStopped
	if time.Duration(s.dev.now()-began) > requestDelay {
		m.watchedSleeps = maxWatchedSleeps
	}
	m.seen = s.polls.Load()
	m.resetSleeps()
	if s.serviceRequested.Swap(false) {
		m.slept = m.requestSleep
	}
	m.short.sleep(m.slept)
}

// sleepUnlessRequested sleeps for nextSleep, and reports whether work is left to the service.
func (m *monitorLoop) sleepUnlessRequested() (requested bool) {
	switch {
	case m.s.serviceRequested.Load():
		return true
	case m.nextSleep < requestDelay:
		m.short.sleep(m.nextSleep)
		return false
	case m.s.sleepLong(m.long, m.nextSleep):
		m.nextSleep, m.requestSleep = minMonitorSleep, requestDelay
		return true
	}
	return false
}

// sleepBeforeService gives the program some time to poll before the service does
// the work left to it.
func (m *monitorLoop) sleepBeforeService() {
	s := m.s
	s.serviceRequested.Store(false)
	m.seen, m.slept = s.polls.Load(), m.requestSleep
	active := true
	if m.watchedSleeps == 0 {
		m.short.sleep(m.requestSleep)
	} else if m.slept, active = s.sleepWhileActive(m.short.sleep, m.requestSleep); active {
		m.watchedSleeps--
	}
	if active {
		m.requestSleep = min(m.requestSleep+m.requestSleep/2, maxMonitorSleep/2)
	} else {
		m.seen = s.polls.Load() // the program may have polled before
	}
	m.nextSleep = min(m.nextSleep, m.slept)
}

// sleepWhileActive sleeps for d, or until the program has shown no activity for a
// good part of d and no goroutine waits: then it computes, and pending work
// would be delayed for long. It returns the time slept and whether the program
// was active to the end. It splits one sleep into several, so it is only for
// programs that have computed for long before.
func (s *shard) sleepWhileActive(sleep func(time.Duration), d time.Duration) (slept time.Duration, active bool) {
	seen := s.sampleActivity()
	for step := d / 5; slept < d; step *= 2 {
		step = min(step, d-slept)
		sleep(step)
		slept += step
		now := s.sampleActivity()
		if now == seen && !now.busy && s.token.isFree() {
			return slept, false
		}
		seen = now
	}
	return slept, true
}

// activityCounters count the calls of a program that is about to poll again:
// posts, and arming or disarming the queues of a channel. Polls of completions
// that are already queued are not counted.
type activityCounters struct {
	posts uint64        // guarded by the shard's lock
	arms  atomic.Uint64 // also counts work left to the service
}

// An activitySample is a snapshot of the activity of a program.
type activitySample struct {
	calls, posts uint64
	busy         bool
}

// sampleActivity returns the current activity. A held lock counts as a post in
// progress, so that the caller is not delayed.
func (s *shard) sampleActivity() (sample activitySample) {
	sample.calls = s.activity.arms.Load() + s.polls.Load()
	if sample.busy = !s.mu.TryLock(); !sample.busy {
		sample.posts = s.activity.posts
		s.mu.Unlock()
	}
	return sample
}

// Sleeps of the monitor that another goroutine ends.
const (
	monitorAwake  int32 = iota // none, or a short sleep, which nobody ends
	monitorIdle                // until work is left to the service
	monitorParked              // until the leader that is asleep in the socket wakes up
)

// blockMonitor blocks in a sleep until wakeMonitor ends it, or the timer, and
// reports the former. It calls stay once more, so that no wake-up is lost.
func (s *shard) blockMonitor(in int32, stay func() bool, timer <-chan time.Time) (woken bool) {
	s.monitorSleep.Store(in)
	defer s.monitorSleep.Store(monitorAwake)
	if !stay() {
		return true
	}
	select {
	case <-timer:
		return false
	case <-s.monitorWake:
		return true
	}
}

// wakeMonitor ends a sleep of the monitor, if it is in this one.
func (s *shard) wakeMonitor(from int32) {
	if s.monitorSleep.Load() == from && s.monitorSleep.CompareAndSwap(from, monitorAwake) {
		select {
		case s.monitorWake <- struct{}{}:
		default:
		}
	}
}

// sleepLong sleeps for d unless work is left to the service, and reports
// whether it is.
func (s *shard) sleepLong(timer *time.Timer, d time.Duration) bool {
	timer.Reset(d)
	return s.blockMonitor(monitorIdle, func() bool { return !s.serviceRequested.Load() }, timer.C)
}

// requestService tells the monitor that work is left to the service that must
// not wait for long if no further call comes: a corked batch, or an event to be
// raised. Further calls cost next to nothing until the service has run.
func (s *shard) requestService() {
	s.activity.arms.Add(1)
	if !s.serviceRequested.Load() {
		s.serviceRequested.Store(true)
		s.wakeMonitor(monitorIdle)
	}
}
