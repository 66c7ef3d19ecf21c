package rnic

import (
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/thread"
)

// How long the service looks.
const (
	serviceSpin   = 50 * time.Microsecond  // looks on after a packet before it blocks
	servicePolite = 32                     // looks after which it lets other threads run in between
	serviceHog    = 200 * time.Microsecond // how long that takes at least where a thread computes
)

// serve is the service goroutine: the processor of the adapter for
// applications that compute, sleep or just do not poll. It reads the socket
// whenever nobody else does, as standBy finds out, and stays out of the way while someone
// does.
//
// It has a thread of its own. A blocking system call returns sooner than Go's network
// poller does; the thread of a program that computes stays on its processor, and that
// of the service beside it, which they would not if goroutines took turns on both; and
// the kernel can be told that this one has little to do at a time.
func (s *shard) serve() {
	defer close(s.done)
	runtime.LockOSThread()
	undo := thread.Prompt()
	defer func() {
		if undo() { // others may have the thread then; else it ends
			runtime.UnlockOSThread()
		}
	}()
	for range s.duty {
		s.rule()
		s.serving.Store(false)
		s.release()
		s.off <- struct{}{}
	}
}

// rule serves the socket until it is recalled, by a poller that looks often or by a waiter. The
// token is held.
func (s *shard) rule() {
	never := func() bool { return s.dev.over.Load() || s.recalled.Load() || s.seizing.Load() > 0 }
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
