package rnic

import (
	"context"
	"errors"
	"net"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/sched"
)

// pollShard takes one look at the socket for a poller, if nobody else is at it.
func (d *Device) pollShard(s *shard, c caller) int {
	s.polls.Add(1)
	if !s.token.CompareAndSwap(false, true) {
		s.claimToken()
		return 0
	}
	n := s.pollSocket(c)
	idle := s.emptyPolls
	if d.options.NoService {
		s.releaseToken()
	} else {
		// Parked waiters stay parked while someone polls: the service notices
		// when that ends and hands over to them.
		s.token.Store(false)
	}
	if n == 0 && idle > yieldAfter {
		s.yieldWhenIdle(idle)
	}
	return n
}

// yieldAfter is how many looks in a row, of a quarter of a microsecond each,
// find nothing before a poller lets others run.
const yieldAfter = 64

// yieldWhenIdle lets other goroutines and, when there are more threads than
// processors, other threads run.
func (s *shard) yieldWhenIdle(idle int) {
	if idle%16 == 0 {
		runtime.Gosched()
	}
	if idle%4 == 0 {
		sched.Yield()
	}
}

// A poller gets the token from a holder that serves everybody, the service or a
// sleeping leader, once it has looked claimLooks times within claimWindow. One that looks
// less often does not need it: packets are handled as they come, and their
// completions are there when it looks. Were the service to leave for each look, packets
// would wait until it is back.
const (
	claimWindow = 50 * time.Microsecond
	claimPolls  = 8
)

// claimToken is called by a poller that found the token taken. It makes a holder that serves
// everybody give way if the poller looks often. On a device without a service the holder
// keeps the token.
func (s *shard) claimToken() {
	if s.dev.options.NoService || !s.serving.Load() && !s.asleep.Load() {
		return
	}
	now := int64(s.dev.now())
	if now-s.claimStart.Load() > int64(claimWindow) {
		s.claimStart.Store(now)
		s.claimCount.Store(1)
		return
	}
	if s.claimCount.Add(1) >= claimPolls {
		s.recallToken()
	}
}

// recallToken makes the service, or a leader that sleeps in the socket, give up the token.
func (s *shard) recallToken() {
	s.recalled.Store(true)
	s.displaceSleeper()
}

// displaceSleeper makes a token holder that sleeps in the socket give way.
func (s *shard) displaceSleeper() {
	if s.asleep.Load() && s.tokenWanted.CompareAndSwap(false, true) {
		s.socket.Wake()
	}
}

// reliefTime is how long who waits expects the service to give way. Where it did not, the
// next does not expect it, and twice as many each time that it is so again, up to
// reliefPause.
const (
	handoverTimeout    = 50 * time.Microsecond
	maxHandoverBackoff = 32
)

// requestHandover asks the service for the token, and reports whether it has let go of it.
// Who is parked instead is woken by the runtime in whichever thread is free, perhaps one
// of a processor on which somebody computes.
func (s *shard) requestHandover(done func() bool) bool {
	if s.skipHandovers.Load() > 0 {
		s.skipHandovers.Add(-1)
		return false
	}
	s.polls.Add(1)
	s.recallToken()
	for till := int64(s.dev.now()) + int64(handoverTimeout); s.serving.Load() && !done(); {
		if int64(s.dev.now()) > till { // it has no processor of the runtime's, perhaps
			s.handoverBackoff.Store(min(max(1, 2*s.handoverBackoff.Load()), maxHandoverBackoff))
			s.skipHandovers.Store(s.handoverBackoff.Load())
			return false
		}
		sched.Yield()
	}
	s.handoverBackoff.Store(0)
	return done() || !s.token.Load()
}

// seizeToken takes the token from whoever has it.
func (s *shard) seizeToken() {
	s.seizers.Add(1)
	for !s.token.CompareAndSwap(false, true) {
		s.displaceSleeper()
		runtime.Gosched()
	}
	s.seizers.Add(-1)
}

// waiter is one call of Wait or PollWait.
type waiter struct {
	ctx        context.Context
	cq         *CQ
	completion bool        // waits for a completion rather than for the event
	baton      bool        // was given the right to try for the token, and has not
	stopWatch  func() bool // stops watching the context
}

// wait blocks until there is what the waiter wants. The first waiter takes the
// token and sleeps in the socket; others park until they are alerted, or until
// it is their turn.
func (w *waiter) wait() error {
	w.cq.addWaiter()
	defer w.finish()
	displaced := false // a poller took the token from us
	for polled := true; ; polled = false {
		if w.consumeEvent() {
			return nil
		}
		if err := w.cq.checkUsable("wait for CQ"); err != nil {
			return err
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		s := w.cq.shard.Load()
		if w.cq.managementOnly.Load() && !w.cq.dev.options.NoService {
			w.waitForAlert()
			continue
		}
		if !displaced && s.seizers.Load() == 0 && s.token.CompareAndSwap(false, true) {
			w.baton = false
			s.polls.Add(1)
			s.leader.Store(w.cq)
			displaced = w.serveAsLeader(s, polled) && !w.cq.dev.options.NoService
			s.leader.Store(nil)
			s.flushCorked() // what was left to us, see gather
			s.releaseToken()
			continue
		}
		if !displaced && s.multiCPU && s.serving.Load() && s.requestHandover(w.isDone) {
			continue
		}
		w.waitAsFollower(s, displaced)
		displaced = false
	}
}

// consumeEvent takes the event, or sees that there is a completion.
func (w *waiter) consumeEvent() bool {
	if w.completion {
		return w.cq.ready.Load() > 0
	}
	return w.cq.eventPending.Load() && w.cq.eventPending.CompareAndSwap(true, false)
}

// isDone reports whether the waiter has nothing more to wait for.
func (w *waiter) isDone() bool {
	c := w.cq
	return !w.completion && c.eventPending.Load() || w.completion && c.ready.Load() > 0 ||
		c.failed.Load() || c.dev.unusable.Load() || w.ctx.Err() != nil
}

// leaderAloneTime is how long a leader that looks keeps its processor: as long as a peer that
// has one of its own takes to answer. Then other processes, of which one may be
// the peer, go first.
const leaderAloneTime = 4 * time.Microsecond

// minSharedYield is how long a yield takes at least in which another thread has run.
const minSharedYield = 2 * time.Microsecond

// minHogYield is how long a yield takes at least that goes to a thread that computes. One to
// many ranks, which all have a turn, takes some hundred microseconds.
const minHogYield = 2 * time.Millisecond

// yieldToThreads lets other threads run, and learns whether there are any
// that want this processor. While there are, a leader need not look for long before it
// lets them: who is to answer may be one of them. It reports whether one of them
// keeps the processor to itself: then who sleeps comes first when there is something
// for it, and who yields comes last.
func (s *shard) yieldToThreads() (hogged bool) {
	took := s.timedYield()
	s.cpuShared = took > minSharedYield && took < minHogYield
	return took >= minHogYield
}

// timedYield lets other threads run, and returns how long they did.
func (s *shard) timedYield() time.Duration {
	began := s.dev.now()
	sched.Yield()
	return time.Duration(s.dev.now() - began)
}

// A leader whose processor others want yields so often before it sleeps, and for so
// long. Where all wait for one another, a turn of each is cheaper than to put each to
// sleep and wake it.
const (
	maxSharedYields = 64
	maxSharedSpin   = 5 * time.Millisecond
)

// serveAsLeader serves the socket until the waiter is done or someone wants the token,
// and reports the latter.
func (w *waiter) serveAsLeader(s *shard, polled bool) (displaced bool) {
	c := caller{cq: w.cq}
	budget := s.leaderSpin.budget()
	spun := budget > 0
	began := int64(s.dev.now())
	turns := 0     // yields in a row that brought nothing
	brief := false // a sleep that no looking went before was so short that that would have done
	called := true // the application has run since the last sleep
	for looks := 0; ; looks++ {
		n := 0
		if looks > 0 || !polled || spun && !s.cpuShared { // who shares the processor gives way first
			n = s.pollSocket(c)
		}
		more := int64(0) // how long to look on behind a short sleep
		if brief && n > 0 {
			more = s.leaderSpin.recordShortSleep()
		}
		brief = false
		if w.isDone() {
			if spun {
				s.leaderSpin.recordHit()
			} else {
				s.flushDeferred() // nobody may look again for long
			}
			return false
		}
		if more > 0 {
			budget, spun = more, true
		}
		if s.seizers.Load() > 0 {
			return true
		}
		passed := int64(0)
		if n == 0 && budget > 0 {
			passed = int64(s.dev.now()) - began
		}
		if n > 0 { // more is coming: it is from here on that nothing may
			turns = 0
			if budget > 0 {
				began = int64(s.dev.now())
			}
		}
		inTurns := budget > 0 && s.cpuShared && turns < maxSharedYields && passed < int64(maxSharedSpin)
		if n > 0 || passed < budget || inTurns {
			if s.followers.Load() > 0 || looks%64 == 63 { // those whose completions have come go first
				runtime.Gosched()
			}
			if n == 0 && (s.followers.Load() > 0 || s.cpuShared || passed > int64(leaderAloneTime)) {
				turns++
				if s.yieldToThreads() {
					s.leaderSpin.recordHog()
					budget, spun = 0, false
				}
			}
			continue
		}
		looked := spun
		if spun {
			s.leaderSpin.recordMiss()
			spun = false
		}
		budget = 0
		s.yieldBeforeSleep(called)
		called = false
		w.watchContext()
		asleep := int64(s.dev.now())
		if s.sleepInSocket(w.isDone) {
			return true
		}
		brief = !looked && int64(s.dev.now())-asleep < s.leaderSpin.budgetMax
	}
}

// leaderYieldInterval is the longest time that a leader sleeps again and again without a call of
// the scheduler. A goroutine that only ever makes system calls looks to the runtime's
// monitor like one that has been in the same one for long: after 10 ms it would take the
// processor away in each, and look after it every 20 us from then on. That made a sleep
// half as dear again.
const leaderYieldInterval = 5 * time.Millisecond

// yieldBeforeSleep lets other goroutines run before a leader sleeps in the socket, if there may be
// any: the application has called, an alert has made a waiter runnable, or restEvery has
// passed. A goroutine that is left in the run queue goes along into the blocking system
// call. If no other processor of the runtime is idle then, only its monitor gets the
// goroutine out, after up to 20 ms. The token is held.
func (s *shard) yieldBeforeSleep(called bool) {
	now, alerts := int64(s.dev.now()), s.dev.wakeups.Load()
	if called || alerts != s.seenWakeups || now-s.lastLeaderYield > int64(leaderYieldInterval) {
		s.seenWakeups, s.lastLeaderYield = alerts, now
		runtime.Gosched()
		runtime.Gosched()
	}
}

// watchContext makes the end of the context wake the socket, whichever shard's it is
// by then.
func (w *waiter) watchContext() {
	if w.stopWatch == nil && w.ctx.Done() != nil {
		w.stopWatch = context.AfterFunc(w.ctx, w.cq.dev.wakeLeaders)
	}
}

// finish passes on what the waiter was given and does not need.
func (w *waiter) finish() {
	w.cq.removeWaiter()
	if w.stopWatch != nil {
		w.stopWatch()
	}
	if w.baton {
		w.cq.shard.Load().offerBaton()
	}
}

// waitAsFollower parks until an alert, the context's end, or the baton. Unless it was
// displaced it does not park when the token has become free meanwhile.
func (w *waiter) waitAsFollower(s *shard, displaced bool) {
	s.followers.Add(1)
	defer s.followers.Add(-1)
	if s.serving.Load() {
		s.displaceSleeper()
	}
	wake := w.cq.parkWaiter()
	defer w.cq.unparkWaiter(wake)
	if !displaced && !s.token.Load() || w.isDone() {
		return
	}
	select {
	case <-wake:
	case <-s.baton:
		w.baton = true
	case <-w.ctx.Done():
	}
}

// waitForAlert parks until an alert or the context's end, and leaves the socket to
// others: to those who wait for traffic, or to the service.
func (w *waiter) waitForAlert() {
	wake := w.cq.parkWaiter()
	defer w.cq.unparkWaiter(wake)
	if w.isDone() {
		return
	}
	select {
	case <-wake:
	case <-w.ctx.Done():
	}
}

// releaseToken gives the token back and lets a parked waiter try for it.
func (s *shard) releaseToken() {
	s.token.Store(false)
	s.offerBaton()
}

// offerBaton gives the baton to a parked waiter.
func (s *shard) offerBaton() {
	if s.followers.Load() > 0 {
		s.dev.wakeups.Add(1)
		select {
		case s.baton <- struct{}{}:
		default:
		}
	}
}

// sleepInSocket blocks in the socket until something can be read, a timer is due or
// someone wakes it. ready is asked once more after the sleeper can be seen. It
// reports whether a poller wants the token. The token is held.
func (s *shard) sleepInSocket(ready func() bool) (wanted bool) {
	s.flushDeferred()
	till := s.nextTimer.Load()
	s.sleepDeadline.Store(till)
	s.asleep.Store(true)
	s.flushCorked() // what was posted since
	// Who schedules an earlier timer, or becomes ready, either sees that we
	// are blocked and wakes us, or did so before this second look.
	if next := s.nextTimer.Load(); next != till {
		till = next
		s.sleepDeadline.Store(till)
	}
	if !ready() && !s.tokenWanted.Load() {
		timeout := time.Duration(-1)
		if till != 0 {
			timeout = time.Duration(max(0, till-int64(s.dev.now())))
		}
		if _, err := s.conn.Wait(timeout); err != nil && !errors.Is(err, net.ErrClosed) {
			s.dev.linkFailed(err)
		}
	}
	s.asleep.Store(false)
	if s.monitorParked.Load() {
		s.unparkMonitor()
	}
	return s.tokenWanted.Swap(false)
}
