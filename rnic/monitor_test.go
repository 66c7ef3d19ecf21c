package rnic

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/racesync"
)

// TestPollBusy checks that a request to the service ends its long sleep, however early.
func TestPollBusy(t *testing.T) {
	s := &shard{monitorState: monitorState{monitorWake: make(chan struct{}, 1)}}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range 1000 {
		s.serviceRequested.Store(false)
		roused := make(chan bool)
		go func() { roused <- s.sleepLong(timer, time.Hour) }()
		for i%2 == 0 && s.monitorSleep.Load() != monitorIdle { // half of them asleep, or about to
			runtime.Gosched()
		}
		s.requestService()
		require.True(t, <-roused)
		select {
		case <-s.monitorWake: // it was about to sleep
		default:
		}
	}
	s.serviceRequested.Store(false)
	require.False(t, s.sleepLong(timer, time.Nanosecond))
}

// TestSleepEndsWithoutCalls checks that the sleep ends early only if the program makes no calls.
func TestSleepEndsWithoutCalls(t *testing.T) {
	s := &shard{}
	const d = time.Second
	slept := func(sign func()) (total time.Duration, alive bool) {
		told, alive := s.sleepWhileActive(func(d time.Duration) { total += d; sign() }, d)
		require.Equal(t, total, told)
		return total, alive
	}
	for name, sign := range map[string]func(){
		"posts":    func() { s.activity.posts++ },
		"asks":     s.requestService,
		"looks":    func() { s.polls.Add(1) },
		"waits":    func() { s.token.acquire(tokenPolling) },
		"is at it": func() { s.mu.TryLock() },
	} {
		total, alive := slept(sign)
		require.True(t, alive, name)
		require.Equal(t, d, total, name)
		s.token.release()
		s.mu.TryLock()
		s.mu.Unlock()
	}
	total, alive := slept(func() {})
	require.False(t, alive)
	require.Equal(t, d/5, total)
	first := true
	total, alive = slept(func() {
		if first {
			s.activity.posts++
		}
		first = false
	})
	require.False(t, alive)
	require.Equal(t, 3*d/5, total)
}

// TestSleeper checks that a sleep ends, also a very short one.
func TestSleeper(t *testing.T) {
	n := newShortSleeper()
	defer n.close()
	for _, d := range []time.Duration{0, 1, time.Microsecond, 50 * time.Microsecond, time.Millisecond} {
		began := time.Now()
		n.sleep(d)
		require.GreaterOrEqual(t, time.Since(began), d)
	}
	(&shortSleeper{}).sleep(time.Microsecond) // without a timer of its own
}

// TestLeftToService checks that an armed event of a channel is left to the service.
func TestLeftToService(t *testing.T) {
	e := newEnd(t, Options{NoService: true}) // which would be recorded
	s := e.dev.shards[0]

	ch, err := e.dev.CreateCompChannel()
	require.NoError(t, err)
	cq, err := ch.CreateCQ(4)
	require.NoError(t, err)
	require.False(t, s.serviceRequested.Load())
	require.NoError(t, cq.ReqNotify(false))
	require.True(t, s.serviceRequested.Load(), "a waiter on a channel does not poll")

	s.serviceRequested.Store(false)
	plain, err := e.dev.CreateCQ(4)
	require.NoError(t, err)
	require.NoError(t, plain.ReqNotify(false))
	require.False(t, s.serviceRequested.Load(), "a waiter on a queue does")
	require.NoError(t, cq.Close())
	require.NoError(t, plain.Close())
	require.NoError(t, ch.Close())
}

// TestSleepsAllocateNothing checks that sleeps of the service do not allocate.
func TestSleepsAllocateNothing(t *testing.T) {
	if racesync.Enabled {
		t.Skip("the race detector allocates")
	}
	n, timer := newShortSleeper(), time.NewTimer(0)
	defer n.close()
	defer timer.Stop()
	s := &shard{monitorState: monitorState{monitorWake: make(chan struct{}, 1)}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		n.sleep(time.Microsecond)
		s.sleepLong(timer, time.Microsecond)
	}))
}
