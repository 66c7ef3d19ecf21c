package progress

import (
	"context"
	"time"
)

// RunIdle leads while no goroutine has polled or waited for interval, until ctx ends or
// the source fails, so that events are handled while the program computes. A goroutine
// that comes to wait takes over. It is called without the lock.
func (e *Engine) RunIdle(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	done := ctx.Done()
	w := &idleWait{e: e}
	e.mu.Lock()
	defer e.mu.Unlock()
	for ctx.Err() == nil {
		if !w.Ready() && e.leader == nil {
			e.src.Prepare(w)
			if e.lead(ctx, w) != nil {
				return
			}
		}
		w.last = e.activity
		e.mu.Unlock()
		select {
		case <-done:
		case <-tick.C:
		}
		e.mu.Lock()
	}
}

// An idleWait is ready when another goroutine has polled or waited since last.
type idleWait struct {
	e    *Engine
	last uint64
}

// Ready implements Waitable.
func (w *idleWait) Ready() bool { return w.e.activity != w.last }

// recordActivity is called by each poll and wait. It ends the lead of RunIdle.
func (e *Engine) recordActivity() {
	e.activity++
	if w, ok := e.leader.(*idleWait); ok && w.Ready() {
		e.ctx.Cancel()
	}
}
