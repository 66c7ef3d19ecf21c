package rnic

import (
	"sync/atomic"
	"time"
)

// How long the one on standby sleeps.
const (
	napMin         = 50 * time.Microsecond  // while others are at work
	minPollGap     = 20 * time.Microsecond  // between their looks on average: more are too few to do without the service
	napMax         = 2 * time.Millisecond   // and have been for long
	requestDelay   = 300 * time.Microsecond // or have left something to it, should they not come back
	watchfulNaps   = 6                      // naps to the end that might have ended early, since the program has computed for long
	napsBeforePark = 5                      // standbys behind a sleeping leader before it parks
)

// runMonitor looks now and then whether anybody serves the socket, and has the service do it
// when nobody does. It has no thread of its own, unlike the service: beside a program that
// polls, a goroutine that sleeps and looks is run by a thread that has nothing else to do,
// while to wake a thread of its own the runtime would take the processor away from the
// program and give it back. It sleeps in the runtime: a system call that sleeps would keep the
// runtime's monitor awake, which costs a spinning poller a tenth of its time.
//
// How long it sleeps is learnt: a little longer each time that the service was not
// needed, since each look costs a process that has to share its processor a
// turn, and shortly once it had something to do. Where the adapter is left with
// something unfinished it does not sleep long, and who leaves it rouses it from a
// long sleep.
func (s *shard) runMonitor() {
	defer close(s.serviceStart)
	seen := s.polls.Load()
	nap, urged, slept, behind := napMin, requestDelay, napMin, 0
	watchful := 0 // such naps left
	short, long := newShortSleeper(), time.NewTimer(0)
	defer short.close()
	defer long.Stop()
	for !s.dev.unusable.Load() {
		polls := s.polls.Load()
		rare := polls-seen < uint64(slept/minPollGap)
		if rare && (polls != seen || slept > napMin) && !s.token.Load() {
			seen = polls // of a while, or perhaps the whole process has had no processor
			short.sleep(napMin)
			polls = s.polls.Load()
		}
		if rare && polls == seen && s.token.CompareAndSwap(false, true) {
			s.recalled.Store(false)
			s.serviceRuns.Add(1)
			s.serving.Store(true)
			s.serviceRequested.Store(false) // it is done now
			began := s.dev.now()
			s.serviceStart <- struct{}{} // and the token
			<-s.serviceStopped
			if time.Duration(s.dev.now()-began) > requestDelay {
				watchful = watchfulNaps
			}
			seen = s.polls.Load()
			nap, urged, slept, behind = napMin, requestDelay, napMin, 0
			if s.serviceRequested.Swap(false) {
				slept = urged
			}
			short.sleep(slept)
			continue
		}
		nap = min(nap+nap/8, napMax)
		if polls == seen && s.asleep.Load() {
			if behind++; behind > napsBeforePark {
				s.parkMonitor()
				behind = 0
			}
		}
		seen, slept = polls, nap
		roused := s.serviceRequested.Load()
		switch {
		case roused:
		case nap < requestDelay:
			short.sleep(nap)
		case s.sleepLong(long, nap):
			nap, urged, roused = napMin, requestDelay, true
		}
		if roused {
			s.serviceRequested.Store(false)
			seen = s.polls.Load()
			alive := true
			if slept = urged; watchful > 0 {
				if slept, alive = s.napWatchfully(short.sleep, urged); alive {
					watchful--
				}
			} else {
				short.sleep(urged)
			}
			if alive {
				urged = min(urged+urged/2, napMax/2)
			} else {
				seen = s.polls.Load() // it has looked before that, perhaps
			}
			nap = min(nap, slept)
		}
		if s.flushDeferred() {
			nap = napMin
		}
	}
}

// napWatchfully sleeps for d, or until the program has given no sign of itself for a good part of
// that, and does not wait either: then it computes, and what it has left is left for long. It
// returns how long it has slept, and whether the program gave signs to the end. It is several
// naps for one, so it is for programs that have computed for long before.
func (s *shard) napWatchfully(sleep func(time.Duration), d time.Duration) (slept time.Duration, alive bool) {
	seen := s.sampleActivity()
	for step := d / 5; slept < d; step *= 2 {
		step = min(step, d-slept)
		sleep(step)
		slept += step
		now := s.sampleActivity()
		if now == seen && !now.busy && !s.token.Load() {
			return slept, false
		}
		seen = now
	}
	return slept, true
}

// activityCounters counts what a program does that is about to come back: it posts to queue pairs, and
// tells queues of a channel to raise an event or not to. One that only takes completions which
// are there already gives none.
type activityCounters struct {
	posts uint64        // guarded by the shard's lock
	arms  atomic.Uint64 // and work left to the service
}

// activitySample is what can be seen of a program: how often it has given a sign or looked, and whether
// it is just posting.
type activitySample struct {
	calls, posts uint64
	busy         bool
}

// sampleActivity looks at the signs. Who has the lock is busy with one, and not kept waiting.
func (s *shard) sampleActivity() (l activitySample) {
	l.calls = s.activity.arms.Load() + s.polls.Load()
	if l.busy = !s.mu.TryLock(); !l.busy {
		l.posts = s.activity.posts
		s.mu.Unlock()
	}
	return l
}

// sleepLong sleeps for long, unless something is left to the service, and reports whether
// something was.
func (s *shard) sleepLong(timer *time.Timer, d time.Duration) bool {
	s.monitorLongSleep.Store(true)
	defer s.monitorLongSleep.Store(false)
	if s.serviceRequested.Load() {
		return true
	}
	timer.Reset(d)
	select {
	case <-timer.C:
		return false
	case <-s.monitorWake:
		return true
	}
}

// requestService is called by who leaves something to the service that should not wait for long,
// in case that no call comes: a batch that waits for company, an event to be raised. It
// costs next to nothing until the service has seen to it.
func (s *shard) requestService() {
	s.activity.arms.Add(1)
	if s.serviceRequested.Load() {
		return
	}
	s.serviceRequested.Store(true)
	if s.monitorLongSleep.Load() && s.monitorLongSleep.CompareAndSwap(true, false) {
		select {
		case s.monitorWake <- struct{}{}:
		default:
		}
	}
}

// flushDeferred sends acknowledgements, and posts that wait for company, that a
// poller left and did not come back for, and reports whether there were any.
func (s *shard) flushDeferred() bool {
	if s.ackQueueLen.Load() == 0 && !s.corked.Load() {
		return false
	}
	s.mu.Lock()
	s.drainAcks(s.dev.now())
	s.flush()
	s.mu.Unlock()
	return true
}

// parkMonitor sleeps until the leader that is asleep in the socket comes back.
func (s *shard) parkMonitor() {
	s.monitorParked.Store(true)
	if s.asleep.Load() && !s.dev.unusable.Load() {
		<-s.monitorUnpark
	}
	s.monitorParked.Store(false)
}

func (s *shard) unparkMonitor() {
	select {
	case s.monitorUnpark <- struct{}{}:
	default:
	}
}
