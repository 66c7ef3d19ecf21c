package rnic

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// Whoever leaves something to the service ends its long sleep, however early.
func TestHurry(t *testing.T) {
	s := &shard{rouse: make(chan struct{}, 1)}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range 1000 {
		s.urged.Store(false)
		roused := make(chan bool)
		go func() { roused <- s.doze(timer, time.Hour) }()
		for i%2 == 0 && !s.dozing.Load() { // half of them asleep, or about to
			runtime.Gosched()
		}
		s.hurry()
		require.True(t, <-roused)
		select {
		case <-s.rouse: // it was about to sleep
		default:
		}
	}
	s.urged.Store(false)
	require.False(t, s.doze(timer, time.Nanosecond))
}

// A nap that is over comes back, also a very short one.
func TestNapper(t *testing.T) {
	n := newNapper()
	defer n.close()
	for _, d := range []time.Duration{0, 1, time.Microsecond, 50 * time.Microsecond, time.Millisecond} {
		began := time.Now()
		n.sleep(d)
		require.GreaterOrEqual(t, time.Since(began), d)
	}
	(&napper{}).sleep(time.Microsecond) // without a timer of its own
}

// An event that a channel is asked for is left to the service.
func TestLeftToService(t *testing.T) {
	e := newEnd(t, Options{NoService: true}) // which would take note
	s := e.dev.shards[0]

	ch, err := e.dev.CreateCompChannel()
	require.NoError(t, err)
	cq, err := ch.CreateCQ(4)
	require.NoError(t, err)
	require.False(t, s.urged.Load())
	require.NoError(t, cq.ReqNotify(false))
	require.True(t, s.urged.Load(), "who waits on a channel does not look")

	s.urged.Store(false)
	plain, err := e.dev.CreateCQ(4)
	require.NoError(t, err)
	require.NoError(t, plain.ReqNotify(false))
	require.False(t, s.urged.Load(), "who waits on a queue does")
	require.NoError(t, cq.Destroy())
	require.NoError(t, plain.Destroy())
	require.NoError(t, ch.Destroy())
}

// The service sleeps without a piece of memory for each time.
func TestNapsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	n, timer := newNapper(), time.NewTimer(0)
	defer n.close()
	defer timer.Stop()
	s := &shard{rouse: make(chan struct{}, 1)}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		n.sleep(time.Microsecond)
		s.doze(timer, time.Microsecond)
	}))
}

// Who waits gets the token from a service that is asleep in the socket, and does not ask
// again and again where that was in vain.
func TestRelieve(t *testing.T) {
	e := newEnd(t, Options{})
	s := e.dev.shards[0]
	never := func() bool { return false }
	for range 20 {
		for s.vain.Store(0); ; s.vain.Store(0) { // it may be back before we have looked, and slow
			for !s.serving.Load() || !s.blocked.Load() {
				runtime.Gosched()
			}
			if s.relieve(never) {
				break
			}
		}
		for !s.token.CompareAndSwap(false, true) {
			runtime.Gosched()
		}
		require.False(t, s.serving.Load())
		s.release()
	}

	for !s.token.CompareAndSwap(false, true) {
		runtime.Gosched()
	}
	s.serving.Store(true) // a service that does not hear
	require.True(t, s.relieve(func() bool { return true }), "who has what he waits for does not wait")
	s.vain.Store(0)
	for _, pause := range []int{1, 2, 4, 8, 16, 32, 32} {
		polls := s.polls.Load()
		require.False(t, s.relieve(never))
		require.Equal(t, polls+1, s.polls.Load())
		for range pause {
			require.False(t, s.relieve(never))
			require.Equal(t, polls+1, s.polls.Load(), "it is not asked")
		}
	}
	s.serving.Store(false)
	s.release()
}

// Whoever may have been woken is counted, so that the service lets them run.
func TestAlertsAreCounted(t *testing.T) {
	e := newEnd(t, Options{})
	counted := func(what string, f func()) {
		before := e.dev.alerts.Load()
		f()
		require.Greater(t, e.dev.alerts.Load(), before, what)
	}
	counted("a waiter that is parked", func() {
		cq := e.cq.(*CQ)
		defer cq.unpark(cq.park())
		cq.alert()
	})
	ch, err := e.dev.CreateCompChannel()
	require.NoError(t, err)
	counted("who waits on a channel", func() { ch.(*CompChannel).signal() })
	counted("who waits for asynchronous events", func() { e.dev.raise(verbs.AsyncEvent{Type: verbs.EventPortActive}) })
	require.NoError(t, ch.Destroy())
}
