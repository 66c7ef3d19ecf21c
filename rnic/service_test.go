package rnic

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

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
