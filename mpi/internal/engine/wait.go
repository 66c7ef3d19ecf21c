package engine

import (
	"context"
	"slices"
	"time"

	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/internal/vtime"
)

// A Waitable is a condition that a goroutine waits for. Ready is called with the lock
// held.
type Waitable = progress.Waitable

// Test reports whether w is ready. If it is not, Test polls the network once.
func (e *Engine) Test(w Waitable) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return w.Ready()
	}
	if !w.Ready() {
		start := e.pollStats.startTest()
		e.progress.Poll()
		if !w.Ready() {
			e.pollStats.recordFailedTest(w, start)
			return false
		}
	}
	e.lastOp.Calls++
	return true
}

// Wait blocks until w is ready or ctx ends, and returns the error of ctx in the latter
// case. If the engine is closed meanwhile, it returns ErrClosed unless w is ready.
func (e *Engine) Wait(ctx context.Context, w Waitable) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastOp.Calls++
	if w.Ready() {
		return nil
	}
	a := e.newActiveWait(w)
	defer e.endWait(a)
	if err := e.progress.Wait(ctx, a); err != nil {
		return err
	}
	if !w.Ready() {
		return ErrClosed
	}
	return nil
}

// An activeWait is a call of Wait in progress. It is ready when its target is, or when
// the engine is closed.
type activeWait struct {
	e *Engine
	ActiveWait
}

// Ready implements Waitable.
func (a *activeWait) Ready() bool { return a.Target.Ready() || a.e.closed }

// newActiveWait adds a wait to the current ones.
func (e *Engine) newActiveWait(w Waitable) *activeWait {
	if len(e.spare) == 0 {
		e.spare = append(e.spare, &activeWait{e: e})
	}
	last := len(e.spare) - 1
	a := e.spare[last]
	e.spare = e.spare[:last]
	e.waits++
	a.ActiveWait = ActiveWait{e.waits, w}
	e.active = append(e.active, a)
	return a
}

// endWait removes a wait from the current ones.
func (e *Engine) endWait(a *activeWait) {
	i := slices.Index(e.active, a)
	e.active = slices.Delete(e.active, i, i+1)
	e.snapshot.removeWait(a.ID)
	a.Target = nil
	e.spare = append(e.spare, a)
}

// source is the fabric as the progress engine's Source.
type source Engine

// Prepare implements progress.Source.
func (s *source) Prepare(w progress.Waitable) {
	if a, ok := w.(*activeWait); ok {
		s.snapshot.recordStack(a.ID)
	}
	if s.fab != nil {
		failed := s.core.FailedPeers()
		s.fab.Flush()
		if s.core.FailedPeers() != failed {
			s.progress.Notify()
		}
	}
}

// Poll implements progress.Source.
func (s *source) Poll() bool { return s.fab != nil && s.fab.Poll() }

// Block implements progress.Source. A fabric that fails ends the requests by its next Poll,
// and so the waits for them. Others, as for messages of the own rank, have no events of the
// fabric to wait for from then on.
func (s *source) Block(ctx context.Context) error {
	if s.fab == nil || s.fabFailed {
		vtime.WaitDone(ctx)
		<-ctx.Done()
	} else if err := s.fab.Block(ctx); err != nil && ctx.Err() == nil {
		s.fabFailed = true
	}
	return nil
}

// IdleInterval is the interval of PollWhenIdle for handlers that other ranks wait for.
const IdleInterval = 2 * time.Millisecond

// PollWhenIdle leads when no other goroutine has polled or waited for interval, until ctx ends, so that handlers run while the program computes. A goroutine that comes
// to wait takes over. It must have returned before the Close of the fabric returns.
func (e *Engine) PollWhenIdle(ctx context.Context, interval time.Duration) {
	if e.size > 1 {
		e.progress.RunIdle(ctx, interval)
	}
}
