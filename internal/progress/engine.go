package progress

import (
	"context"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/internal/vtime"
)

// A Source is the network that the leader serves on behalf of all waiting goroutines. A
// panic in a method reaches the caller of the Engine's method that called it, which has the
// lock again and no longer leads: another waiting goroutine does.
type Source interface {
	// Prepare is called with the lock held by each goroutine before it blocks, as leader
	// or follower: it sends packets delayed for coalescing. It is called again after
	// each wake-up that leaves w unready. It may make w ready; if it makes others ready,
	// for example because sending fails, it calls Engine.Notify.
	Prepare(w Waitable)

	// Poll handles pending events without blocking, and reports whether there were any.
	// It is called with the lock held. It need not call Engine.Notify.
	Poll() bool

	// Block blocks until Poll may find an event or ctx ends, and returns the error of
	// ctx in the latter case. Other errors are final: they end the calls of Wait. Block
	// is called without the lock, by one goroutine at a time.
	Block(ctx context.Context) error
}

// A Waitable is a condition that a goroutine waits for. Ready is called with the lock
// held, by any goroutine, and has no side effects. If it panics, the goroutine that waits
// for the condition gets the panic, whichever called it.
type Waitable interface{ Ready() bool }

// An Engine makes progress on a Source for its waiting goroutines. All methods are called
// with the lock held, except RunIdle.
type Engine struct {
	mu  *sync.Mutex
	src Source

	leader    Waitable     // of the goroutine that leads, or nil
	ctx       *leadContext // of Source.Block
	followers []*follower
	next      *follower   // woken to lead, has not run yet; or nil
	spare     []*follower // for reuse
	activity  uint64      // counts polls and waits, for RunIdle
	idle      bool        // RunIdle leads, and nobody has polled or waited since
}

// A follower is a goroutine that waits without leading.
type follower struct {
	Waitable
	wake chan struct{} // has room for one, and is empty between waits
}

// New returns an engine whose state and conditions mu protects.
func New(mu *sync.Mutex, src Source) *Engine {
	return &Engine{mu: mu, src: src, ctx: newLeadContext()}
}

// Leading reports whether a goroutine leads.
func (e *Engine) Leading() bool { return e.leader != nil }

// Poll handles pending events and notifies, unless a goroutine leads. It reports whether
// there were any.
func (e *Engine) Poll() (some bool) {
	e.recordActivity()
	if e.leader != nil {
		return false
	}
	some = true // also if a handler panics: events before it have been handled
	defer func() {
		if some {
			e.Notify()
		}
	}()
	return e.src.Poll()
}

// Wait blocks until w is ready, ctx ends or the source fails. It returns nil in the first
// case, else the error of ctx or of Source.Block. The lock is released while the goroutine
// blocks.
func (e *Engine) Wait(ctx context.Context, w Waitable) error {
	defer e.ensureLeader() // this goroutine may have been woken to lead
	for !w.Ready() {
		if err := ctx.Err(); err != nil {
			return err
		}
		e.recordActivity()
		e.src.Prepare(w)
		switch {
		case w.Ready():
		case e.leader != nil:
			e.follow(ctx, w)
		default:
			if err := e.lead(ctx, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// lead serves the source until w is ready, ctx ends or the source fails, and returns the
// error in the last case.
func (e *Engine) lead(ctx context.Context, w Waitable) error {
	e.leader = w
	defer func() { // also if a handler panics
		e.leader = nil
		e.Notify() // of the events of the last Poll
	}()
	for {
		err := e.block(ctx)
		e.src.Poll()
		if w.Ready() || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		e.src.Prepare(w)
		e.Notify() // also of the leader, if Prepare has made it ready
	}
}

// block calls Source.Block without the lock, and returns its error unless it was interrupted.
func (e *Engine) block(ctx context.Context) (err error) {
	e.ctx.caller = ctx
	e.mu.Unlock()
	defer func() { // also if Block panics
		e.mu.Lock()
		if e.ctx.endBlock() {
			e.ctx, err = newLeadContext(), nil
		}
	}()
	return e.src.Block(e.ctx)
}

// follow blocks until the goroutine is woken or ctx ends.
func (e *Engine) follow(ctx context.Context, w Waitable) {
	done := ctx.Done() // with the lock held, because a method of a program's context may panic
	if len(e.spare) == 0 {
		e.spare = append(e.spare, &follower{wake: make(chan struct{}, 1)})
	}
	last := len(e.spare) - 1
	f := e.spare[last]
	e.spare, f.Waitable = e.spare[:last], w
	e.followers = append(e.followers, f)
	e.mu.Unlock()
	if vtime.OnSimulatedHost() { // otherwise the function would be allocated
		vtime.WaitUntil(func() bool { return len(f.wake) > 0 || ctx.Err() != nil })
	}
	select {
	case <-f.wake:
		e.mu.Lock()
	case <-done:
		e.mu.Lock()
		if i := slices.Index(e.followers, f); i >= 0 {
			e.followers = slices.Delete(e.followers, i, i+1)
		} else {
			<-f.wake // woken meanwhile
		}
	}
	if e.next == f {
		e.next = nil
	}
	f.Waitable = nil
	e.spare = append(e.spare, f)
}

// Notify wakes the goroutines whose Waitable is ready and, if none leads, one that will.
func (e *Engine) Notify() {
	if e.leader != nil && isReady(e.leader) {
		e.ctx.Cancel()
	}
	e.wakeFollowers(func(f *follower) bool { return isReady(f) })
	e.ensureLeader()
}

// isReady reports whether w is ready, on behalf of the goroutine that waits for it. A panic
// counts as ready: that goroutine then calls Ready itself.
func isReady(w Waitable) (ready bool) {
	defer func() {
		if recover() != nil {
			ready = true
		}
	}()
	return w.Ready()
}

// Interrupt wakes all waiting goroutines, which call Source.Prepare and check their
// Waitables again.
func (e *Engine) Interrupt() {
	e.RestartBlock()
	e.wakeFollowers(func(*follower) bool { return true })
}

// RestartBlock ends the current Source.Block, after which the leader polls and calls it
// again: a Block that waits for some of the events only must consider new ones.
func (e *Engine) RestartBlock() {
	if e.leader != nil {
		e.ctx.Cancel()
	}
}

// ensureLeader wakes a follower to lead if there is no leader, nor one woken before. All
// followers are unready or have been notified.
func (e *Engine) ensureLeader() {
	if e.leader == nil && e.next == nil && len(e.followers) > 0 {
		e.next = e.followers[0]
		e.followers = slices.Delete(e.followers, 0, 1)
		e.next.wake <- struct{}{}
	}
}

// wakeFollowers wakes the followers that match.
func (e *Engine) wakeFollowers(match func(*follower) bool) {
	if len(e.followers) == 0 { // as in most waits: the scan would cost them 2 ns
		return
	}
	e.followers = slices.DeleteFunc(e.followers, func(f *follower) bool {
		wake := match(f)
		if wake {
			f.wake <- struct{}{}
		}
		return wake
	})
}
