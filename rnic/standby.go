package rnic

import (
	"sync/atomic"
	"time"
)

// How long the one on standby sleeps.
const (
	standbyShort = 50 * time.Microsecond  // while others are at work
	standbyGap   = 20 * time.Microsecond  // between their looks on average: more are too few to do without the service
	standbyLong  = 2 * time.Millisecond   // and have been for long
	standbyUrged = 300 * time.Microsecond // or have left something to it, should they not come back
	watchFor     = 6                      // naps to the end that might have ended early, since the program has computed for long
	parkAfter    = 5                      // standbys behind a sleeping leader before it parks
)

// standBy looks now and then whether anybody serves the socket, and has the service do it
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
func (s *shard) standBy() {
	defer close(s.duty)
	seen := s.polls.Load()
	nap, urged, slept, behind := standbyShort, standbyUrged, standbyShort, 0
	watchful := 0 // such naps left
	short, long := newNapper(), time.NewTimer(0)
	defer short.close()
	defer long.Stop()
	for !s.dev.over.Load() {
		polls := s.polls.Load()
		rare := polls-seen < uint64(slept/standbyGap)
		if rare && (polls != seen || slept > standbyShort) && !s.token.Load() {
			seen = polls // of a while, or perhaps the whole process has had no processor
			short.sleep(standbyShort)
			polls = s.polls.Load()
		}
		if rare && polls == seen && s.token.CompareAndSwap(false, true) {
			s.recalled.Store(false)
			s.stints.Add(1)
			s.serving.Store(true)
			s.urged.Store(false) // it is done now
			began := s.dev.now()
			s.duty <- struct{}{} // and the token
			<-s.off
			if time.Duration(s.dev.now()-began) > standbyUrged {
				watchful = watchFor
			}
			seen = s.polls.Load()
			nap, urged, slept, behind = standbyShort, standbyUrged, standbyShort, 0
			if s.urged.Swap(false) {
				slept = urged
			}
			short.sleep(slept)
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
		switch {
		case roused:
		case nap < standbyUrged:
			short.sleep(nap)
		case s.doze(long, nap):
			nap, urged, roused = standbyShort, standbyUrged, true
		}
		if roused {
			s.urged.Store(false)
			seen = s.polls.Load()
			alive := true
			if slept = urged; watchful > 0 {
				if slept, alive = s.watchOver(short.sleep, urged); alive {
					watchful--
				}
			} else {
				short.sleep(urged)
			}
			if alive {
				urged = min(urged+urged/2, standbyLong/2)
			} else {
				seen = s.polls.Load() // it has looked before that, perhaps
			}
			nap = min(nap, slept)
		}
		if s.sendOwed() {
			nap = standbyShort
		}
	}
}

// watchOver sleeps for d, or until the program has given no sign of itself for a good part of
// that, and does not wait either: then it computes, and what it has left is left for long. It
// returns how long it has slept, and whether the program gave signs to the end. It is several
// naps for one, so it is for programs that have computed for long before.
func (s *shard) watchOver(sleep func(time.Duration), d time.Duration) (slept time.Duration, alive bool) {
	seen := s.signsOfLife()
	for step := d / 5; slept < d; step *= 2 {
		step = min(step, d-slept)
		sleep(step)
		slept += step
		now := s.signsOfLife()
		if now == seen && !now.busy && !s.token.Load() {
			return slept, false
		}
		seen = now
	}
	return slept, true
}

// signs counts what a program does that is about to come back: it posts to queue pairs, and
// tells queues of a channel to raise an event or not to. One that only takes completions which
// are there already gives none.
type signs struct {
	posts uint64        // guarded by the shard's lock
	arms  atomic.Uint64 // and work left to the service
}

// life is what can be seen of a program: how often it has given a sign or looked, and whether
// it is just posting.
type life struct {
	signs, posts uint64
	busy         bool
}

// signsOfLife looks at the signs. Who has the lock is busy with one, and not kept waiting.
func (s *shard) signsOfLife() (l life) {
	l.signs = s.signs.arms.Load() + s.polls.Load()
	if l.busy = !s.mu.TryLock(); !l.busy {
		l.posts = s.signs.posts
		s.mu.Unlock()
	}
	return l
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
// costs next to nothing until the service has seen to it.
func (s *shard) hurry() {
	s.signs.arms.Add(1)
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

func (s *shard) wakeStandby() {
	select {
	case s.unpark <- struct{}{}:
	default:
	}
}
