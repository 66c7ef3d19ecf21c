package rnic

import (
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/thread"
)

// How long the service looks and sleeps.
const (
	serviceSpin   = 50 * time.Microsecond  // looks on after a packet before it blocks
	servicePolite = 32                     // looks after which it lets other threads run in between
	serviceHog    = 200 * time.Microsecond // how long that takes at least where a thread computes
	standbyShort  = 50 * time.Microsecond  // sleeps while others are at work
	standbyLong   = 2 * time.Millisecond   // and have been for long
	standbyUrged  = 300 * time.Microsecond // or have left something to it, should they not come back
	parkAfter     = 5                      // standbys behind a sleeping leader before it parks
)

// serve is the service goroutine: the processor of the adapter for
// applications that compute, sleep or just do not poll. It reads the socket
// whenever nobody else does and stays out of the way while someone does. On standby it
// sleeps in the runtime: a system call that sleeps would keep the runtime's monitor
// awake, which costs a spinning poller a tenth of its time.
//
// It has a thread of its own. A blocking system call returns sooner than Go's network
// poller does; the thread of a program that computes stays on its processor, and that
// of the service beside it, which they would not if goroutines took turns on both; and
// the kernel can be told that this one has little to do at a time.
//
// How long it sleeps there is learnt: a little longer each time that it was not
// needed, since each look costs a process that has to share its processor a
// turn, and shortly once it had something to do. Where the adapter is left with
// something unfinished it does not sleep long, and who leaves it rouses the service from a
// long sleep.
func (s *shard) serve() {
	defer close(s.done)
	runtime.LockOSThread()
	undo := thread.Prompt()
	defer func() {
		if undo() { // others may have the thread then; else it ends
			runtime.UnlockOSThread()
		}
	}()
	seen := s.polls.Load()
	nap, urged, slept, behind := standbyShort, standbyUrged, standbyShort, 0
	short, long := newNapper(), time.NewTimer(0)
	defer short.close()
	defer long.Stop()
	for !s.dev.over.Load() {
		polls := s.polls.Load()
		if polls == seen && !s.token.Load() && slept >= standbyLong/4 {
			time.Sleep(standbyShort) // perhaps it is the whole process that has had no processor
			polls = s.polls.Load()
		}
		if polls == seen && s.token.CompareAndSwap(false, true) {
			s.serving.Store(true)
			s.urged.Store(false) // it is done now
			s.rule(polls)
			s.serving.Store(false)
			s.release()
			seen = s.polls.Load()
			nap, urged, slept, behind = standbyShort, standbyUrged, standbyShort, 0
			// By a timer of the runtime, which takes a millisecond where a processor is idle:
			// who has just taken over would do so again in the middle of a long copy.
			if s.urged.Swap(false) {
				short.sleep(urged)
			} else {
				time.Sleep(nap)
			}
			continue
		}
		nap = min(nap+nap/8, standbyLong)
		if polls == seen && s.blocked.Load() {
			if behind++; behind > parkAfter {
				s.park()
				behind = 0
			}
		}
		seen, slept = polls, nap
		roused := s.urged.Load()
		if !roused && s.doze(long, nap) {
			nap, urged, roused = standbyShort, standbyUrged, true
		}
		if roused {
			s.urged.Store(false)
			seen = s.polls.Load()
			short.sleep(urged)
			slept, urged = urged, min(urged+urged/2, standbyLong/2)
			nap = min(nap, slept)
		}
		if s.sendOwed() {
			nap = standbyShort
		}
	}
}

// doze sleeps for long, unless something is left to the service, and reports whether
// something was.
func (s *shard) doze(timer *time.Timer, d time.Duration) bool {
	s.dozing.Store(true)
	defer s.dozing.Store(false)
	if s.urged.Load() {
		return true
	}
	timer.Reset(d)
	select {
	case <-timer.C:
		return false
	case <-s.rouse:
		return true
	}
}

// hurry is called by who leaves something to the service that should not wait for long,
// in case that no call comes: a batch that waits for company, an event to be raised. It
// costs nothing until the service has seen to it.
func (s *shard) hurry() {
	if s.urged.Load() {
		return
	}
	s.urged.Store(true)
	if s.dozing.Load() && s.dozing.CompareAndSwap(true, false) {
		select {
		case s.rouse <- struct{}{}:
		default:
		}
	}
}

// rule serves the socket until a poller appears. The token is held.
func (s *shard) rule(polls uint64) {
	never := func() bool { return s.dev.over.Load() || s.polls.Load() != polls || s.seizing.Load() > 0 }
	spell := s.stay.budget()
	till := int64(s.dev.now()) + spell
	worked := true
	for looks := 1; !never(); looks++ {
		if s.look() > 0 {
			if looks > 1 && till != 0 {
				s.stay.hit()
			}
			till, looks = int64(s.dev.now())+spell, 0
			worked = true
			continue
		}
		if s.followers.Load() > 0 {
			return
		}
		if worked {
			worked = false
			s.letRun()
			continue
		}
		if int64(s.dev.now()) < till {
			if looks >= servicePolite && looks%8 == 0 && s.yieldFor() >= serviceHog {
				s.stay.hogged()
				spell, till = 0, 0
			}
			continue
		}
		if s.sleep(never) {
			return
		}
		spell, till = s.stay.budget(), 0
	}
}

// letRunEvery is how long at most the service keeps those waiting of whom it does not know.
const letRunEvery = 100 * time.Microsecond

// letRun runs whom a packet has made runnable. Where the application computes, such a
// goroutine waits in the queue of this thread's scheduler, which would go along into
// the next system call, and come back with it. Others may wait there for other reasons, so
// it is done now and then in any case; not always, because it is two switches of threads.
func (s *shard) letRun() {
	now, alerts := int64(s.dev.now()), s.dev.alerts.Load()
	if alerts != s.alerts || now-s.ran > int64(letRunEvery) {
		s.alerts, s.ran = alerts, now
		runtime.Gosched()
	}
}

// sendOwed sends acknowledgements, and posts that wait for company, that a
// poller left and did not come back for, and reports whether there were any.
func (s *shard) sendOwed() bool {
	if s.owed.Load() == 0 && !s.corked.Load() {
		return false
	}
	s.mu.Lock()
	s.acknowledge(s.dev.now())
	s.flush()
	s.mu.Unlock()
	return true
}

// park sleeps until the leader that is asleep in the socket comes back.
func (s *shard) park() {
	s.parked.Store(true)
	if s.blocked.Load() && !s.dev.over.Load() {
		<-s.unpark
	}
	s.parked.Store(false)
}

func (s *shard) wakeService() {
	select {
	case s.unpark <- struct{}{}:
	default:
	}
}
