package progress_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/progress"
)

// A network is a Source whose events make conditions ready.
type network struct {
	mu       sync.Mutex // of the engine
	engine   *progress.Engine
	arrived  []*condition // events that Poll has not handled
	wake     chan struct{}
	blocked  int // goroutines in Block
	prepared int // calls of Prepare
	fail     error

	onPrepare, onPoll, onBlock func() // called once, with the lock held; onPoll behind the events
}

// A condition is ready once its event was handled.
type condition struct {
	ready  bool
	panics bool // Ready panics
}

func (c *condition) Ready() bool {
	if c.panics {
		panic(errBoom)
	}
	return c.ready
}

// errBoom is the value of the panics of the tests.
var errBoom = errors.New("boom")

// callOnce calls *f, if it is set, and clears it.
func callOnce(f *func()) {
	if g := *f; g != nil {
		*f = nil
		g()
	}
}

func newNetwork() *network {
	n := &network{wake: make(chan struct{}, 1)}
	n.engine = progress.New(&n.mu, n)
	return n
}

func (n *network) Prepare(progress.Waitable) {
	n.prepared++
	callOnce(&n.onPrepare)
}

func (n *network) Poll() bool {
	some := len(n.arrived) > 0
	for _, c := range n.arrived {
		c.ready = true
	}
	n.arrived = nil
	callOnce(&n.onPoll)
	return some
}

func (n *network) Block(ctx context.Context) error {
	n.mu.Lock()
	n.blocked++
	pending, err := len(n.arrived) > 0, n.fail
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.blocked--
		callOnce(&n.onBlock)
	}()
	switch {
	case err != nil:
		return err
	case pending:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	select {
	case <-n.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deliver lets the event of a condition arrive.
func (n *network) deliver(c *condition) {
	n.mu.Lock()
	n.arrived = append(n.arrived, c)
	n.mu.Unlock()
	n.signal()
}

// signal ends the current or the next Block.
func (n *network) signal() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// locked calls f with the lock held.
func (n *network) locked(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// A waiter is a goroutine in Wait.
type waiter struct {
	cond   *condition
	ctx    context.Context
	cancel context.CancelFunc
	err    error // of Wait, or the value of its panic
	done   bool
	atEnd  func() // called behind Wait, with the lock held
}

func (n *network) start(wg *sync.WaitGroup, parent context.Context, c *condition) *waiter {
	w := &waiter{cond: c}
	w.ctx, w.cancel = context.WithCancel(parent)
	wg.Go(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		defer func() {
			if v := recover(); v != nil {
				w.err = v.(error)
			}
			w.done = true
			callOnce(&w.atEnd)
		}()
		w.err = n.engine.Wait(w.ctx, w.cond)
	})
	return w
}

func seeds(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("SOFTRNIC_SEEDS")); err == nil { // a range is for the simulator
		return n
	}
	return 300
}

// TestSeeds runs random calls, events and cancellations and checks after each batch, when
// no goroutine can go on by itself, that the states of the package comment hold: no
// wake-up was lost and the network has exactly one leader as long as somebody waits.
func TestSeeds(t *testing.T) {
	for seed := range seeds(t) {
		synctest.Test(t, func(t *testing.T) { runSeed(t, uint64(seed)) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func runSeed(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	n := newNetwork()
	var wg sync.WaitGroup
	var waiters []*waiter
	var conds []*condition
	failed := errors.New("cable pulled")
	stopIdle := func() {}
	cond := func() *condition {
		if len(conds) == 0 || r.IntN(3) == 0 {
			conds = append(conds, &condition{})
		}
		return conds[r.IntN(len(conds))]
	}
	idle := false
	for range 60 {
		for range 1 + r.IntN(4) {
			switch r.IntN(12) {
			case 0, 1, 2, 3:
				waiters = append(waiters, n.start(&wg, t.Context(), cond()))
			case 4, 5, 6:
				n.deliver(cond())
			case 7:
				c := cond()
				n.locked(func() { c.ready = true; n.engine.Notify() })
			case 8:
				if len(waiters) > 0 {
					waiters[r.IntN(len(waiters))].cancel()
				}
			case 9:
				n.locked(n.engine.Interrupt)
			case 10:
				n.locked(func() { n.engine.Poll() })
			case 11:
				if idle = !idle; idle {
					ctx, cancel := context.WithCancel(t.Context())
					stopIdle = cancel
					wg.Go(func() { n.engine.RunIdle(ctx, time.Millisecond) })
				} else {
					stopIdle()
				}
			}
		}
		synctest.Wait()
		if idle { // it leads after one or two intervals without calls
			time.Sleep(3 * time.Millisecond)
			synctest.Wait()
		}
		waiting := 0
		for i, w := range waiters {
			switch {
			case w.done && w.err != nil:
				require.ErrorIs(t, w.err, context.Canceled, "seed %d, waiter %d", seed, i)
				require.Error(t, w.ctx.Err(), "seed %d, waiter %d", seed, i)
			case w.done:
				require.True(t, w.cond.ready, "seed %d, waiter %d", seed, i)
			default:
				waiting++
				require.False(t, w.cond.ready, "seed %d: waiter %d was not woken", seed, i)
				require.NoError(t, w.ctx.Err(), "seed %d: waiter %d was not canceled", seed, i)
			}
		}
		leads := waiting > 0 || idle
		require.Equal(t, leads, n.engine.Leading(), "seed %d", seed)
		require.Equal(t, leads, n.blocked == 1, "seed %d: %d goroutines in Block", seed, n.blocked)
		if leads {
			require.Empty(t, n.arrived, "seed %d: events are not handled", seed)
		}
	}
	n.locked(func() { n.fail = failed })
	n.signal()
	synctest.Wait()
	stopIdle()
	wg.Wait() // a failed source leaves no waiter behind
	for _, w := range waiters {
		if w.err != nil && w.ctx.Err() == nil {
			require.ErrorIs(t, w.err, failed)
		}
		w.cancel()
	}
	require.False(t, n.engine.Leading())
	require.Zero(t, n.blocked)
}

// TestLeaderHandsOver ends the leader's wait in each way while a follower waits: the
// follower leads then.
func TestLeaderHandsOver(t *testing.T) {
	for name, end := range map[string]func(*network, *waiter){
		"event":   func(n *network, w *waiter) { n.deliver(w.cond) },
		"notify":  func(n *network, w *waiter) { n.locked(func() { w.cond.ready = true; n.engine.Notify() }) },
		"context": func(_ *network, w *waiter) { w.cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				var wg sync.WaitGroup
				leader := n.start(&wg, t.Context(), &condition{})
				synctest.Wait()
				follower := n.start(&wg, t.Context(), &condition{})
				synctest.Wait()
				end(n, leader)
				synctest.Wait()
				require.True(t, leader.done)
				require.False(t, follower.done)
				require.Equal(t, 1, n.blocked)
				n.deliver(follower.cond)
				wg.Wait()
				require.NoError(t, follower.err)
			})
		})
	}
}

// TestTargetedWakeups counts the goroutines that an event wakes: the one that it makes
// ready, or the one that leads next, and no other.
func TestTargetedWakeups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		var wg sync.WaitGroup
		var list []*waiter
		for range 10 {
			list = append(list, n.start(&wg, t.Context(), &condition{}))
			synctest.Wait()
		}
		before := n.prepared
		n.deliver(list[5].cond)
		synctest.Wait()
		require.True(t, list[5].done)
		require.Equal(t, before+1, n.prepared) // the leader, before it blocks again
		before = n.prepared
		list[0].cancel()
		synctest.Wait()
		require.Equal(t, before+1, n.prepared) // the one that leads next
		for _, w := range list {
			w.cancel()
		}
		wg.Wait()
	})
}

// TestPrepareMakesReady checks that a goroutine whose condition Prepare meets returns without an
// event, be it the one that is about to block or another one.
func TestPrepareMakesReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		var wg sync.WaitGroup
		own := &condition{}
		n.onPrepare = func() { own.ready = true }
		require.True(t, n.waitDone(&wg, own), "before it leads")

		again := &condition{}
		leader := n.start(&wg, t.Context(), again)
		synctest.Wait()
		n.onPrepare = func() { again.ready = true }
		n.signal()
		synctest.Wait()
		require.True(t, leader.done, "while it leads")

		leader = n.start(&wg, t.Context(), &condition{})
		synctest.Wait()
		follower := n.start(&wg, t.Context(), &condition{})
		synctest.Wait()
		n.onPrepare = func() {
			own.ready = true
			leader.cond.ready, follower.cond.ready = true, true
			n.engine.Notify()
		}
		own.ready = false
		require.True(t, n.waitDone(&wg, own), "before it follows")
		require.True(t, leader.done)
		require.True(t, follower.done)
	})
}

// waitDone starts a goroutine that waits for c, and reports whether it returns without an event.
func (n *network) waitDone(wg *sync.WaitGroup, c *condition) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := n.start(wg, ctx, c)
	synctest.Wait()
	return w.done
}

// TestInterrupt makes each waiting goroutine call Prepare.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		var wg sync.WaitGroup
		var list []*waiter
		for range 5 {
			list = append(list, n.start(&wg, t.Context(), &condition{}))
		}
		synctest.Wait()
		before := n.prepared
		n.locked(n.engine.Interrupt)
		synctest.Wait()
		require.Equal(t, before+5, n.prepared)
		for _, w := range list {
			w.cancel()
		}
		wg.Wait()
	})
}

// TestRace exchanges events between goroutines that wait at the same time, for the race
// detector.
func TestRace(t *testing.T) {
	n := newNetwork()
	var wg sync.WaitGroup
	const pairs, rounds = 8, 200
	for range pairs {
		conds := make([]condition, rounds)
		wg.Go(func() {
			for i := range conds {
				n.locked(func() { require.NoError(t, n.engine.Wait(t.Context(), &conds[i])) })
			}
		})
		wg.Go(func() {
			for i := range conds {
				n.deliver(&conds[i])
			}
		})
	}
	wg.Wait()
}

// TestNoAllocation waits as the only goroutine.
func TestNoAllocation(t *testing.T) {
	n := newNetwork()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &condition{}
	arrived := []*condition{c}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		n.mu.Lock()
		c.ready = false
		n.arrived = arrived
		_ = n.engine.Wait(ctx, c)
		n.mu.Unlock()
	}))
}
