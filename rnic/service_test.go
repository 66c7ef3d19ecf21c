package rnic

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

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
