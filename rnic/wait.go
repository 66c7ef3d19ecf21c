package rnic

import (
	"context"
	"errors"
	"net"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/thread"
)

// poll takes one look at the socket for a poller, if nobody else is at it.
func (d *Device) poll(s *shard, c caller) int {
	s.polls.Add(1)
	if !s.token.CompareAndSwap(false, true) {
		s.claim()
		return 0
	}
	n := s.step(c)
	idle := s.idle
	if d.options.NoService {
		s.release()
	} else {
		// Parked waiters stay parked while someone polls: the service notices
		// when that ends and hands over to them.
		s.token.Store(false)
	}
	if n == 0 && idle > yieldAfter {
		s.yield(idle)
	}
	return n
}

// yieldAfter is how many looks in a row, of a quarter of a microsecond each,
// find nothing before a poller lets others run.
const yieldAfter = 64

// yield lets other goroutines and, when there are more threads than
// processors, other threads run.
func (s *shard) yield(idle int) {
	if idle%16 == 0 {
		runtime.Gosched()
	}
	if idle%4 == 0 {
		thread.Yield()
	}
}

// A poller gets the token from a holder that serves everybody, the service or a
// sleeping leader, once it has looked claimLooks times within claimWindow. One that looks
// less often does not need it: packets are handled as they come, and their
// completions are there when it looks. Were the service to leave for each look, packets
// would wait until it is back.
const (
	claimWindow = 50 * time.Microsecond
	claimLooks  = 8
)

// claim is called by a poller that found the token taken. It makes a holder that serves
// everybody give way if the poller looks often. On a device without a service the holder
// keeps the token.
func (s *shard) claim() {
	if s.dev.options.NoService || !s.serving.Load() && !s.blocked.Load() {
		return
	}
	now := int64(s.dev.now())
	if now-s.claimed.Load() > int64(claimWindow) {
		s.claimed.Store(now)
		s.claims.Store(1)
		return
	}
	if s.claims.Add(1) >= claimLooks {
		s.recall()
	}
}

// recall makes the service, or a leader that sleeps in the socket, give up the token.
func (s *shard) recall() {
	s.recalled.Store(true)
	s.displace()
}

// displace makes a token holder that sleeps in the socket give way.
func (s *shard) displace() {
	if s.blocked.Load() && s.wanted.CompareAndSwap(false, true) {
		s.base.Wake()
	}
}

// reliefTime is how long who waits expects the service to give way. Where it did not, the
// next does not expect it, and twice as many each time that it is so again, up to
// reliefPause.
const (
	reliefTime  = 50 * time.Microsecond
	reliefPause = 32
)

// relieve asks the service for the token, and reports whether it has let go of it.
// Who is parked instead is woken by the runtime in whichever thread is free, perhaps one
// of a processor on which somebody computes.
func (s *shard) relieve(done func() bool) bool {
	if s.vain.Load() > 0 {
		s.vain.Add(-1)
		return false
	}
	s.polls.Add(1)
	s.recall()
	for till := int64(s.dev.now()) + int64(reliefTime); s.serving.Load() && !done(); {
		if int64(s.dev.now()) > till { // it has no processor of the runtime's, perhaps
			s.pause.Store(min(max(1, 2*s.pause.Load()), reliefPause))
			s.vain.Store(s.pause.Load())
			return false
		}
		thread.Yield()
	}
	s.pause.Store(0)
	return done() || !s.token.Load()
}

// seize takes the token from whoever has it.
func (s *shard) seize() {
	s.seizing.Add(1)
	for !s.token.CompareAndSwap(false, true) {
		s.displace()
		runtime.Gosched()
	}
	s.seizing.Add(-1)
}

// waiter is one call of Wait or PollWait.
type waiter struct {
	ctx    context.Context
	cq     *CQ
	hungry bool        // waits for a completion rather than for the event
	baton  bool        // was given the right to try for the token, and has not
	cancel func() bool // stops watching the context
}

// wait blocks until there is what the waiter wants. The first waiter takes the
// token and sleeps in the socket; others park until they are alerted, or until
// it is their turn.
func (w *waiter) wait() error {
	w.cq.enterWait()
	defer w.stop()
	displaced := false // a poller took the token from us
	for polled := true; ; polled = false {
		if w.take() {
			return nil
		}
		if err := w.cq.state("wait for CQ"); err != nil {
			return err
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		s := w.cq.shard.Load()
		if w.cq.aside.Load() && !w.cq.dev.options.NoService {
			w.attend()
			continue
		}
		if !displaced && s.seizing.Load() == 0 && s.token.CompareAndSwap(false, true) {
			w.baton = false
			s.polls.Add(1)
			s.leader.Store(w.cq)
			displaced = w.lead(s, polled) && !w.cq.dev.options.NoService
			s.leader.Store(nil)
			s.uncork() // what was left to us, see gather
			s.release()
			continue
		}
		if !displaced && s.apart && s.serving.Load() && s.relieve(w.done) {
			continue
		}
		w.follow(s, displaced)
		displaced = false
	}
}

// take takes the event, or sees that there is a completion.
func (w *waiter) take() bool {
	if w.hungry {
		return w.cq.ready.Load() > 0
	}
	return w.cq.fired.Load() && w.cq.fired.CompareAndSwap(true, false)
}

// done reports whether the waiter has nothing more to wait for.
func (w *waiter) done() bool {
	c := w.cq
	return !w.hungry && c.fired.Load() || w.hungry && c.ready.Load() > 0 ||
		c.failed.Load() || c.dev.over.Load() || w.ctx.Err() != nil
}

// aloneFor is how long a leader that looks keeps its processor: as long as a peer that
// has one of its own takes to answer. Then other processes, of which one may be
// the peer, go first.
const aloneFor = 4 * time.Microsecond

// othersRan is how long a yield takes at least in which another thread has run.
const othersRan = 2 * time.Microsecond

// hogTime is how long a yield takes at least that goes to a thread that computes. One to
// many ranks, which all have a turn, takes some hundred microseconds.
const hogTime = 2 * time.Millisecond

// giveWay lets other threads run, and learns whether there are any
// that want this processor. While there are, a leader need not look for long before it
// lets them: who is to answer may be one of them. It reports whether one of them
// keeps the processor to itself: then who sleeps comes first when there is something
// for it, and who yields comes last.
func (s *shard) giveWay() (hogged bool) {
	took := s.yieldFor()
	s.shared = took > othersRan && took < hogTime
	return took >= hogTime
}

// yieldFor lets other threads run, and returns how long they did.
func (s *shard) yieldFor() time.Duration {
	began := s.dev.now()
	thread.Yield()
	return time.Duration(s.dev.now() - began)
}

// A leader whose processor others want yields so often before it sleeps, and for so
// long. Where all wait for one another, a turn of each is cheaper than to put each to
// sleep and wake it.
const (
	sharedTurns = 64
	sharedFor   = 5 * time.Millisecond
)

// lead serves the socket until the waiter is done or someone wants the token,
// and reports the latter.
func (w *waiter) lead(s *shard, polled bool) (displaced bool) {
	c := caller{cq: w.cq}
	budget := s.spin.budget()
	spun := budget > 0
	began := int64(s.dev.now())
	turns := 0     // yields in a row that brought nothing
	brief := false // a sleep that no looking went before was so short that that would have done
	called := true // the application has run since the last sleep
	for looks := 0; ; looks++ {
		n := 0
		if looks > 0 || !polled || spun && !s.shared { // who shares the processor gives way first
			n = s.step(c)
		}
		more := int64(0) // how long to look on behind a short sleep
		if brief && n > 0 {
			more = s.spin.woken()
		}
		brief = false
		if w.done() {
			if spun {
				s.spin.hit()
			} else {
				s.sendOwed() // nobody may look again for long
			}
			return false
		}
		if more > 0 {
			budget, spun = more, true
		}
		if s.seizing.Load() > 0 {
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
		inTurns := budget > 0 && s.shared && turns < sharedTurns && passed < int64(sharedFor)
		if n > 0 || passed < budget || inTurns {
			if s.followers.Load() > 0 || looks%64 == 63 { // those whose completions have come go first
				runtime.Gosched()
			}
			if n == 0 && (s.followers.Load() > 0 || s.shared || passed > int64(aloneFor)) {
				turns++
				if s.giveWay() {
					s.spin.hogged()
					budget, spun = 0, false
				}
			}
			continue
		}
		looked := spun
		if spun {
			s.spin.miss()
			spun = false
		}
		budget = 0
		s.runReady(called)
		called = false
		w.watch()
		asleep := int64(s.dev.now())
		if s.sleep(w.done) {
			return true
		}
		brief = !looked && int64(s.dev.now())-asleep < s.spin.most
	}
}

// restEvery is the longest time that a leader sleeps again and again without a call of
// the scheduler. A goroutine that only ever makes system calls looks to the runtime's
// monitor like one that has been in the same one for long: after 10 ms it would take the
// processor away in each, and look after it every 20 us from then on. That made a sleep
// half as dear again.
const restEvery = 5 * time.Millisecond

// runReady lets other goroutines run before a leader sleeps in the socket, if there may be
// any: the application has called, an alert has made a waiter runnable, or restEvery has
// passed. A goroutine that is left in the run queue goes along into the blocking system
// call. If no other processor of the runtime is idle then, only its monitor gets the
// goroutine out, after up to 20 ms. The token is held.
func (s *shard) runReady(called bool) {
	now, alerts := int64(s.dev.now()), s.dev.alerts.Load()
	if called || alerts != s.alerts || now-s.rested > int64(restEvery) {
		s.alerts, s.rested = alerts, now
		runtime.Gosched()
		runtime.Gosched()
	}
}

// watch makes the end of the context wake the socket, whichever shard's it is
// by then.
func (w *waiter) watch() {
	if w.cancel == nil && w.ctx.Done() != nil {
		w.cancel = context.AfterFunc(w.ctx, w.cq.dev.wakeLeaders)
	}
}

// stop passes on what the waiter was given and does not need.
func (w *waiter) stop() {
	w.cq.leaveWait()
	if w.cancel != nil {
		w.cancel()
	}
	if w.baton {
		w.cq.shard.Load().offer()
	}
}

// follow parks until an alert, the context's end, or the baton. Unless it was
// displaced it does not park when the token has become free meanwhile.
func (w *waiter) follow(s *shard, displaced bool) {
	s.followers.Add(1)
	defer s.followers.Add(-1)
	if s.serving.Load() {
		s.displace()
	}
	wake := w.cq.park()
	defer w.cq.unpark(wake)
	if !displaced && !s.token.Load() || w.done() {
		return
	}
	select {
	case <-wake:
	case <-s.baton:
		w.baton = true
	case <-w.ctx.Done():
	}
}

// attend parks until an alert or the context's end, and leaves the socket to
// others: to those who wait for traffic, or to the service.
func (w *waiter) attend() {
	wake := w.cq.park()
	defer w.cq.unpark(wake)
	if w.done() {
		return
	}
	select {
	case <-wake:
	case <-w.ctx.Done():
	}
}

// release gives the token back and lets a parked waiter try for it.
func (s *shard) release() {
	s.token.Store(false)
	s.offer()
}

// offer gives the baton to a parked waiter.
func (s *shard) offer() {
	if s.followers.Load() > 0 {
		s.dev.alerts.Add(1)
		select {
		case s.baton <- struct{}{}:
		default:
		}
	}
}

// sleep blocks in the socket until something can be read, a timer is due or
// someone wakes it. ready is asked once more after the sleeper can be seen. It
// reports whether a poller wants the token. The token is held.
func (s *shard) sleep(ready func() bool) (wanted bool) {
	s.sendOwed()
	till := s.nextTimer.Load()
	s.sleepTill.Store(till)
	s.blocked.Store(true)
	s.uncork() // what was posted since
	// Who schedules an earlier timer, or becomes ready, either sees that we
	// are blocked and wakes us, or did so before this second look.
	if next := s.nextTimer.Load(); next != till {
		till = next
		s.sleepTill.Store(till)
	}
	if !ready() && !s.wanted.Load() {
		timeout := time.Duration(-1)
		if till != 0 {
			timeout = time.Duration(max(0, till-int64(s.dev.now())))
		}
		if _, err := s.conn.Wait(timeout); err != nil && !errors.Is(err, net.ErrClosed) {
			s.dev.linkFailed(err)
		}
	}
	s.blocked.Store(false)
	if s.parked.Load() {
		s.wakeStandby()
	}
	return s.wanted.Swap(false)
}
