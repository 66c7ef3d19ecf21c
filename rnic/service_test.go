package rnic

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/sched"
	"github.com/softrnic/softrnic/verbs"
)

// TestServiceYieldsToken checks that a waiter gets the token from a service that sleeps in the socket, and
// backs off after a timeout.
func TestServiceYieldsToken(t *testing.T) {
	e := newEnd(t, Options{})
	s := e.dev.shards[0]
	never := func() bool { return false }
	for range 20 {
		for s.skipHandovers.Store(0); ; s.skipHandovers.Store(0) { // the service may return first, and slowly
			for !s.token.isServing() || !s.token.isAsleep() {
				runtime.Gosched()
			}
			if s.requestHandover(never) {
				break
			}
		}
		for !s.token.acquire(tokenPolling) {
			runtime.Gosched()
		}
		s.releaseToken()
	}

	for !s.token.acquire(tokenServing) { // a service that does not respond
		runtime.Gosched()
	}
	require.True(t, s.requestHandover(func() bool { return true }), "a waiter with its completion does not wait")
	s.skipHandovers.Store(0)
	for _, pause := range []int{1, 2, 4, 8, 16, 32, 32} {
		polls := s.polls.Load()
		require.False(t, s.requestHandover(never))
		require.Equal(t, polls+1, s.polls.Load())
		for range pause {
			require.False(t, s.requestHandover(never))
			require.Equal(t, polls+1, s.polls.Load(), "no request to the service")
		}
	}
	s.releaseToken()
}

// TestWakeupsAreCounted checks that possible wake-ups are counted, so that the service lets the
// woken goroutines run.
func TestWakeupsAreCounted(t *testing.T) {
	e := newEnd(t, Options{})
	counted := func(what string, f func()) {
		before := e.dev.wakeups.Load()
		f()
		require.Greater(t, e.dev.wakeups.Load(), before, what)
	}
	counted("a waiter that is parked", func() {
		cq := e.cq.(*completionQueue)
		defer cq.unparkWaiter(cq.parkWaiter())
		cq.wakeWaiters()
	})
	ch, err := e.dev.CreateCompChannel()
	require.NoError(t, err)
	counted("a waiter on a channel", func() { ch.(*completionChannel).wakeOne() })
	counted("a waiter for asynchronous events", func() { e.dev.raiseEvent(verbs.AsyncEvent{Type: verbs.EventPortActive}) })
	require.NoError(t, ch.Close())
}

// TestManagementDoesNotLead checks that a waiter for management datagrams leaves the socket to the
// waiters for traffic, and still gets its datagrams.
func TestManagementDoesNotLead(t *testing.T) {
	a, b := newEndOf(t, Options{}, verbs.GSI), newEndOf(t, Options{}, verbs.GSI)
	for _, e := range []*end{a, b} {
		for _, s := range []verbs.QPAttr{{State: verbs.StateInit, PortNum: 1}, {State: verbs.StateRTR}, {State: verbs.StateRTS}} {
			mask := verbs.AttrState
			switch s.State {
			case verbs.StateInit:
				mask |= verbs.AttrPKeyIndex | verbs.AttrPort | verbs.AttrQKey
			case verbs.StateRTS:
				mask |= verbs.AttrSQPSN
			}
			require.NoError(t, e.qp.Modify(s, mask))
		}
	}
	b.recv(t, 1, 0, 100)
	cq := b.cq.(*completionQueue)
	got := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go func() {
		var wc [1]verbs.WC
		_, err := b.cq.PollWait(ctx, wc[:])
		got <- err
	}()
	for cq.parkedCount.Load() == 0 {
		runtime.Gosched()
	}
	require.Nil(t, b.dev.shards[0].leader.Load(), "it has parked and does not lead")
	a.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 10)}, AH: a.handle(t, b.dev), RemoteQPN: 1})
	require.NoError(t, <-got)

	other := b.newQP(t, verbs.RC) // a queue for traffic as well
	require.False(t, cq.managementOnly.Load())
	require.NoError(t, other.Close())
}

// A steppingClock advances at each reading: a yield, which it is read before and after, takes one step.
type steppingClock struct {
	step     time.Duration
	now      int64
	readings int
}

func (c *steppingClock) read() int64 {
	c.readings++
	c.now += int64(c.step)
	return c.now
}

// TestServiceSpinEnds checks that the service sleeps instead of spinning if a thread that computes runs when
// it yields, and after spins that found nothing, spins again after the pauses, and yields after each empty
// poll as long as threads run that return the processor soon.
func TestServiceSpinEnds(t *testing.T) {
	clock := &steppingClock{}
	startSpin := func(s *sched.Spinner) serviceSpin {
		spin := serviceSpin{Spinner: s, mover: &mover{}, slice: &sched.Slice{}}
		spin.startBudget()
		spin.restart(1, false)
		return spin
	}
	newSpinner := func(yield time.Duration) *sched.Spinner {
		s := &sched.Spinner{}
		clock.step, clock.readings = yield, 0
		s.Init(serviceSpinTime, clock.read)
		return s
	}
	// countSleeps returns the number of packets after which the service sleeps at once.
	countSleeps := func(s *sched.Spinner) (n int) {
		for spin := startSpin(s); ; n++ {
			if spin.restart(1, false); spin.keepSpinning(1, 1) {
				return n
			}
			spin = startSpin(s)
		}
	}
	for _, test := range []struct {
		yield  time.Duration
		polls  int // before the service sleeps
		yields int // of them
	}{
		{time.Microsecond, 1000, (1000 - servicePollsBeforeYield) / 8}, // nothing else ran
		{3 * time.Microsecond, 1000, 1000 - servicePollsBeforeYield},
		{serviceHogYield - 1, 1000, 1000 - servicePollsBeforeYield},
		{serviceHogYield, servicePollsBeforeYield, 1},
	} {
		s := newSpinner(test.yield)
		spin := startSpin(s)
		polls := 1
		for ; polls < 1000 && spin.keepSpinning(1, polls); polls++ {
		}
		require.Equal(t, test.polls, polls, test.yield)
		require.Equal(t, test.yields, clock.readings/2, test.yield)
		spin.restart(1, true)
		require.Equal(t, test.polls == 1000, spin.keepSpinning(1, 1), "it spins after a packet that finds it awake")
		require.Equal(t, test.polls != 1000, countSleeps(s) > 0, test.yield)
	}

	s := newSpinner(time.Microsecond)
	misses := 0
	for ; countSleeps(s) == 0; misses++ {
		require.Less(t, misses, 20, "it spins although it never finds a packet")
		spin := startSpin(s)
		require.False(t, spin.keepSpinning(1+int64(serviceSpinTime), 1))
	}
	require.Greater(t, misses, 1, "one spin says nothing")
}

// TestPollersShareProcessor checks that pollers yield after each empty read once another thread has run
// during a yield, and no longer once none does, or one that computes.
func TestPollersShareProcessor(t *testing.T) {
	e := newEnd(t, Options{NoService: true})
	s := e.dev.shards[0]
	clock := &steppingClock{}
	s.leaderSpinner.Init(time.Millisecond, clock.read)
	s.leaderSpinner.YieldFunc = func() {} // so that the threads of this machine do not count
	// countYields returns the number of yields in a number of polls that find nothing.
	countYields := func(polls int, yield time.Duration) int {
		clock.step, clock.readings = yield, 0
		for range polls {
			_, err := e.cq.Poll(make([]verbs.WC, 1))
			require.NoError(t, err)
		}
		return clock.readings / 2
	}
	const alone, peer, hog = time.Microsecond, 5 * time.Microsecond, 3 * time.Millisecond
	require.Zero(t, countYields(yieldAfter, alone))
	require.Equal(t, 4, countYields(16, alone), "every fourth poll")
	require.GreaterOrEqual(t, countYields(16, peer), 13)
	require.Equal(t, 16, countYields(16, peer))
	s.emptyPolls = 0 // as after a packet
	require.Equal(t, 16, countYields(16, peer), "the first polls, too")
	s.emptyPolls = 0
	require.Equal(t, 1, countYields(16, alone), "the processor is its own again")
	s.emptyPolls = yieldAfter
	require.GreaterOrEqual(t, countYields(16, peer), 13)
	s.emptyPolls = 0
	require.Equal(t, 1, countYields(16, hog), "each yield costs milliseconds")
}
