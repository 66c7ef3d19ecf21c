package rnic

import (
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/sched"
)

// How long the service looks.
const (
	serviceSpin             = 50 * time.Microsecond  // looks on after a packet before it blocks
	servicePollsBeforeYield = 32                     // looks after which it lets other threads run in between
	serviceHogYield         = 200 * time.Microsecond // how long that takes at least where a thread computes
)

// runService is the service goroutine: the processor of the adapter for
// applications that compute, sleep or just do not poll. It reads the socket
// whenever nobody else does, as standBy finds out, and stays out of the way while someone
// does.
//
// It has a thread of its own. A blocking system call returns sooner than Go's network
// poller does; the thread of a program that computes stays on its processor, and that
// of the service beside it, which they would not if goroutines took turns on both; and
// the kernel can be told that this one has little to do at a time.
func (s *shard) runService() {
	defer close(s.serviceDone)
	runtime.LockOSThread()
	undo := sched.SetShortSlice()
	defer func() {
		if undo() { // others may have the thread then; else it ends
			runtime.UnlockOSThread()
		}
	}()
	for range s.serviceStart {
		s.serveSocket()
		s.serving.Store(false)
		s.releaseToken()
		s.serviceStopped <- struct{}{}
	}
}

// serveSocket serves the socket until it is recalled, by a poller that looks often or by a waiter. The
// token is held.
func (s *shard) serveSocket() {
	never := func() bool { return s.dev.unusable.Load() || s.recalled.Load() || s.seizers.Load() > 0 }
	spell := s.serviceSpinner.budget()
	till := int64(s.dev.now()) + spell
	worked := true
	for looks := 1; !never(); looks++ {
		if s.pollForService() > 0 {
			if looks > 1 && till != 0 {
				s.serviceSpinner.recordHit()
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
			s.yieldToWoken()
			continue
		}
		if int64(s.dev.now()) < till {
			if looks >= servicePollsBeforeYield && looks%8 == 0 && s.timedYield() >= serviceHogYield {
				s.serviceSpinner.recordHog()
				spell, till = 0, 0
			}
			continue
		}
		if s.sleepInSocket(never) {
			return
		}
		spell, till = s.serviceSpinner.budget(), 0
	}
}

// serviceYieldInterval is how long at most the service keeps those waiting of whom it does not know.
const serviceYieldInterval = 100 * time.Microsecond

// yieldToWoken runs whom a packet has made runnable. Where the application computes, such a
// goroutine waits in the queue of this thread's scheduler, which would go along into
// the next system call, and come back with it. Others may wait there for other reasons, so
// it is done now and then in any case; not always, because it is two switches of threads.
func (s *shard) yieldToWoken() {
	now, alerts := int64(s.dev.now()), s.dev.wakeups.Load()
	if alerts != s.seenWakeups || now-s.lastServiceYield > int64(serviceYieldInterval) {
		s.seenWakeups, s.lastServiceYield = alerts, now
		runtime.Gosched()
	}
}
