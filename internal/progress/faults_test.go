package progress_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A faultWorld is an engine in a state of the package comment, with the goroutines that a fault
// may hit.
type faultWorld struct {
	*network
	t        *testing.T
	wg       sync.WaitGroup
	all      []*waiter
	leader   *waiter // or nil
	follower *waiter // one of those that do not lead, or nil
	idleEnd  chan error

	want map[*waiter]error // outcomes of the fault; the other goroutines are not affected
}

// add starts a goroutine that waits.
func (w *faultWorld) add(ctx context.Context) *waiter {
	x := w.start(&w.wg, ctx, &condition{})
	w.all = append(w.all, x)
	return x
}

// faultStates bring an engine into each state, and call fault there with the lock held.
var faultStates = map[string]func(w *faultWorld, fault func()){
	"no leader": func(w *faultWorld, fault func()) { w.locked(fault) },
	"leads, no followers": func(w *faultWorld, fault func()) {
		w.leader = w.add(w.t.Context())
		synctest.Wait()
		w.locked(fault)
	},
	"leads, some followers": func(w *faultWorld, fault func()) {
		w.lead(3)
		w.locked(fault)
	},
	"the woken follower does not lead yet": func(w *faultWorld, fault func()) {
		w.lead(3)
		w.leaveFirst(fault)
	},
	"another follower does not lead yet": func(w *faultWorld, fault func()) {
		w.lead(3)
		w.follower = w.all[2]
		w.leaveFirst(fault)
	},
	"idle": func(w *faultWorld, fault func()) {
		w.startIdle()
		w.locked(fault)
	},
	"idle, a follower comes": func(w *faultWorld, fault func()) {
		w.startIdle()
		w.locked(func() {
			w.follower = w.add(w.t.Context())
			fault()
		})
	},
}

// lead makes one of n goroutines lead.
func (w *faultWorld) lead(n int) {
	for range n {
		w.add(w.t.Context())
		synctest.Wait()
	}
	w.leader, w.follower = w.all[0], w.all[1]
}

// leaveFirst makes the leader leave, and calls fault before the follower that it has woken runs.
func (w *faultWorld) leaveFirst(fault func()) {
	first := w.leader
	w.leader, w.want[first] = nil, nil
	w.locked(func() {
		first.atEnd = fault
		first.cond.ready = true
		w.engine.Notify()
	})
}

// startIdle makes a goroutine in RunIdle lead.
func (w *faultWorld) startIdle() {
	w.idleEnd = make(chan error, 1)
	w.wg.Go(func() {
		defer func() { err, _ := recover().(error); w.idleEnd <- err }()
		w.engine.RunIdle(w.t.Context(), time.Millisecond)
	})
	time.Sleep(3 * time.Millisecond)
	synctest.Wait()
	require.True(w.t, w.engine.Leading())
}

// A doneless context is one of a program, whose Done panics.
type doneless struct{ context.Context }

func (doneless) Done() <-chan struct{} { panic(errBoom) }

func boom() { panic(errBoom) }

// faults are called with the lock held. They set what becomes of the goroutines, and report
// whether they can happen in this state.
var faults = map[string]func(w *faultWorld) bool{
	"the leader's context ends": func(w *faultWorld) bool {
		if w.leader != nil {
			w.leader.cancel()
			w.want[w.leader] = context.Canceled
		}
		return w.leader != nil
	},
	"a follower's context ends": func(w *faultWorld) bool {
		if w.follower != nil {
			w.follower.cancel()
			w.want[w.follower] = context.Canceled
		}
		return w.follower != nil
	},
	"the context of a newcomer has ended": func(w *faultWorld) bool {
		ctx, cancel := context.WithCancel(w.t.Context())
		cancel()
		w.want[w.add(ctx)] = context.Canceled
		return true
	},
	"the context of a newcomer panics": func(w *faultWorld) bool {
		x := &waiter{cond: &condition{}}
		w.all = append(w.all, x)
		w.want[x] = errBoom
		w.wg.Go(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			defer func() { x.err, x.done = recover().(error), true }()
			_ = w.engine.Wait(doneless{w.t.Context()}, x.cond)
		})
		return true
	},
	"Ready of the leader panics": func(w *faultWorld) bool {
		if w.leader != nil {
			w.leader.cond.panics = true
			w.want[w.leader] = errBoom
			w.engine.Notify()
		}
		return w.leader != nil
	},
	"Ready of a follower panics": func(w *faultWorld) bool {
		if w.follower != nil {
			w.follower.cond.panics = true
			w.want[w.follower] = errBoom
			w.engine.Notify()
		}
		return w.follower != nil
	},
	"Prepare panics": func(w *faultWorld) bool {
		w.onPrepare = boom
		if w.leader != nil {
			w.want[w.leader] = errBoom
			w.signal()
		} else if w.follower != nil { // it leads next, or follows again
			w.want[w.nextToPrepare()] = errBoom
		} else {
			w.want[w.add(w.t.Context())] = errBoom
		}
		return true
	},
	"Poll panics behind the event of a follower": func(w *faultWorld) bool {
		w.onPoll = boom
		if w.follower != nil {
			w.arrived = append(w.arrived, w.follower.cond)
			w.want[w.follower] = nil
		}
		if w.leader != nil {
			w.want[w.leader] = errBoom
		}
		if w.engine.Leading() {
			w.signal()
		} else {
			require.PanicsWithValue(w.t, errBoom, func() { w.engine.Poll() })
		}
		return true
	},
	"Block panics": func(w *faultWorld) bool {
		if !w.engine.Leading() {
			return false
		}
		w.onBlock = boom
		if w.leader != nil {
			w.want[w.leader] = errBoom
		}
		w.signal()
		return true
	},
	"the network fails": func(w *faultWorld) bool {
		w.fail = errCut
		for _, x := range w.all {
			if _, known := w.want[x]; !known {
				w.want[x] = errCut
			}
		}
		w.signal()
		return true
	},
}

var errCut = errors.New("cable cut")

// nextToPrepare returns the goroutine that blocks next: the woken follower, or a newcomer.
func (w *faultWorld) nextToPrepare() *waiter {
	if w.idleEnd != nil {
		return w.follower
	}
	return w.all[1]
}

// TestFaults injects each fault in each state. The goroutines that it concerns return with its
// error or panic, the others wait on with a leader, and all of them and a newcomer are served
// by later events.
func TestFaults(t *testing.T) {
	for state, enter := range faultStates {
		for fault, inject := range faults {
			t.Run(state+"/"+fault, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := &faultWorld{network: newNetwork(), t: t, want: map[*waiter]error{}}
					possible := false
					enter(w, func() { possible = inject(w) })
					synctest.Wait()
					if possible {
						w.checkOutcomes()
					}
					w.checkService()
				})
			})
		}
	}
}

func (w *faultWorld) checkOutcomes() {
	waiting := 0
	for i, x := range w.all {
		if want, ends := w.want[x]; ends {
			require.True(w.t, x.done, "goroutine %d still waits", i)
			require.ErrorIs(w.t, x.err, want, "goroutine %d", i)
		} else {
			require.False(w.t, x.done, "goroutine %d has returned: %v", i, x.err)
			waiting++
		}
	}
	if waiting > 0 {
		require.True(w.t, w.engine.Leading(), "%d goroutines wait without a leader", waiting)
		require.Equal(w.t, 1, w.blocked)
	}
}

// checkService delivers the events of all goroutines that wait, and of a newcomer.
func (w *faultWorld) checkService() {
	w.locked(func() { w.fail, w.onPrepare, w.onPoll, w.onBlock = nil, nil, nil, nil })
	w.add(w.t.Context())
	synctest.Wait()
	for i, x := range w.all {
		if !x.done {
			w.deliver(x.cond)
			synctest.Wait()
			require.True(w.t, x.done, "goroutine %d was not woken", i)
			require.NoError(w.t, x.err)
		}
	}
	require.Zero(w.t, w.blocked)
}
