package rnic

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

// The sleep ends early for who gives no sign of himself, and for nobody else.
func TestWatchOver(t *testing.T) {
	s := &shard{}
	const d = time.Second
	slept := func(sign func()) (total time.Duration, alive bool) {
		told, alive := s.watchOver(func(d time.Duration) { total += d; sign() }, d)
		require.Equal(t, total, told)
		return total, alive
	}
	for name, sign := range map[string]func(){
		"posts":    func() { s.signs.posts++ },
		"asks":     s.hurry,
		"looks":    func() { s.polls.Add(1) },
		"waits":    func() { s.token.Store(true) },
		"is at it": func() { s.mu.TryLock() },
	} {
		total, alive := slept(sign)
		require.True(t, alive, name)
		require.Equal(t, d, total, name)
		s.token.Store(false)
		s.mu.TryLock()
		s.mu.Unlock()
	}
	total, alive := slept(func() {})
	require.False(t, alive)
	require.Equal(t, d/5, total)
	first := true
	total, alive = slept(func() {
		if first {
			s.signs.posts++
		}
		first = false
	})
	require.False(t, alive)
	require.Equal(t, 3*d/5, total)
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
