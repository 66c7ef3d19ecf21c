package rnic

import (
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/sched"
)

// An arbiter decides which goroutine reads the socket: it has the token, and the
// requests of the goroutines that want it.
type arbiter struct {
	token token
	polls atomic.Uint64 // polls, waits that lead, and batches of long posts; the service stays out while it increases

	claimStart atomic.Int64 // start of the current claimWindow: a poller found the token taken
	claimCount atomic.Int32 // polls that found the token taken in this window

	pollersShare atomic.Bool // another thread ran when a poller last yielded

	leader          atomic.Pointer[completionQueue] // completion queue of the waiter that holds the token
	followers       atomic.Int32                    // waiters parked because another one leads
	baton           chan struct{}                   // makes one follower try to take the token
	skipHandovers   atomic.Int32                    // calls of requestHandover left to skip after one that timed out
	handoverBackoff atomic.Int32                    // number of calls skipped after the last timeout
}

// A poller takes the token from the service or a sleeping leader once claimPolls
// polls have found the token taken within claimWindow. Less frequent polls leave
// the token there: packets are handled as they arrive, and would wait for the
// service to return if every poll displaced it.
const (
	claimWindow = 50 * time.Microsecond
	claimPolls  = 8
)

// claimToken records that a poller found the token taken, and recalls the token
// from the service or a sleeping leader if polls are frequent. A device without
// a service never recalls it.
func (s *shard) claimToken() {
	if s.dev.options.NoService || !s.token.isServing() && !s.token.isAsleep() {
		return
	}
	now := int64(s.dev.now())
	if now-s.claimStart.Load() > int64(claimWindow) {
		s.claimStart.Store(now)
		s.claimCount.Store(1)
		return
	}
	if s.claimCount.Add(1) >= claimPolls {
		s.wakeHolder(s.token.recall())
	}
}

// wakeHolder wakes the token holder from its sleep in the socket, if a transition
// of the token asks for it.
func (s *shard) wakeHolder(wake bool) {
	if wake {
		s.socket.Wake()
	}
}

// A waiter waits handoverTimeout for the service to hand over the token. After a
// timeout the next handovers are skipped, with exponential backoff up to
// maxHandoverBackoff.
const (
	handoverTimeout    = 50 * time.Microsecond
	maxHandoverBackoff = 32
)

// requestHandover recalls the token from the service, waits for the handover,
// and reports whether the token was released. A waiter that parks instead is
// woken by the Go runtime in any idle thread, possibly on a processor that is
// busy computing.
func (s *shard) requestHandover(done func() bool) bool {
	if s.skipHandovers.Load() > 0 {
		s.skipHandovers.Add(-1)
		return false
	}
	s.polls.Add(1)
	s.wakeHolder(s.token.recall())
	for deadline := int64(s.dev.now()) + int64(handoverTimeout); s.token.isServing() && !done(); {
		if int64(s.dev.now()) > deadline { // perhaps its thread has no processor of the runtime
			s.handoverBackoff.Store(min(max(1, 2*s.handoverBackoff.Load()), maxHandoverBackoff))
			s.skipHandovers.Store(s.handoverBackoff.Load())
			return false
		}
		sched.Yield()
	}
	s.handoverBackoff.Store(0)
	return done() || s.token.isFree()
}

// seizeToken takes the token from any holder. It blocks until the token is
// taken.
func (s *shard) seizeToken() {
	s.token.addSeizer()
	defer s.token.removeSeizer()
	for !s.token.seize() {
		s.wakeHolder(s.token.displace())
		runtime.Gosched()
	}
}

// releaseToken releases the token and offers the baton to a follower.
func (s *shard) releaseToken() {
	s.token.release()
	s.offerBaton()
}

// offerBaton makes one follower, if there is any, try for the token.
func (s *shard) offerBaton() {
	if s.followers.Load() > 0 {
		s.dev.wakeups.Add(1)
		select {
		case s.baton <- struct{}{}:
		default:
		}
	}
}

// sleepInSocket blocks until the socket is readable, a timer is due or Wake is
// called, and reports whether another goroutine requested the token. The token
// is held. A goroutine that arms an earlier timer or makes ready true either
// sees the token asleep and wakes the socket, or did so before the look at both.
func (s *shard) sleepInSocket(ready func() bool) (wanted bool) {
	s.flushDeferred()
	if !s.token.beginSleep() {
		return true
	}
	defer func() { // also if a method of the program's context panics
		wanted = s.token.endSleep()
		s.wakeMonitor(monitorParked)
	}()
	s.flushCorked() // posts since flushDeferred
	if deadline := s.nextTimer.Load(); !ready() && s.token.isAsleep() {
		timeout := time.Duration(-1)
		if deadline != 0 {
			timeout = time.Duration(max(0, deadline-int64(s.dev.now())))
		}
		if _, err := s.conn.Wait(timeout); err != nil && !errors.Is(err, net.ErrClosed) {
			s.dev.linkFailed(err)
		}
	}
	return wanted // set by the deferred function
}
