package progress

import (
	"context"
	"time"

	"github.com/softrnic/softrnic/internal/vtime"
)

// RunIdle leads while no goroutine has polled or waited for interval, until ctx ends or
// the source fails, so that events are handled while the program computes. A goroutine
// that comes to wait takes over. It is called without the lock.
func (e *Engine) RunIdle(ctx context.Context, interval time.Duration) {
	tick := vtime.NewTicker(interval)
	defer tick.Stop()
	done := ctx.Done()
	w := &idleWait{e: e}
	isDue := func() bool { return ctx.Err() != nil || len(tick.C) > 0 }
	e.mu.Lock()
	defer e.mu.Unlock()
	for ctx.Err() == nil {
		if !w.Ready() && e.leader == nil {
			e.idle = true
			e.src.Prepare(w)
			err := e.lead(ctx, w)
			e.idle = false
			if err != nil {
				return
			}
		}
		w.last = e.activity
		e.mu.Unlock()
		vtime.WaitUntil(isDue)
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

// Idle reports whether RunIdle handles events, and no goroutine has come to wait or poll.
func (e *Engine) Idle() bool { return e.idle }

// recordActivity is called by each poll and wait. It ends the lead of RunIdle.
func (e *Engine) recordActivity() {
	e.activity++
	e.idle = false
	if w, ok := e.leader.(*idleWait); ok && w.Ready() {
		e.ctx.Cancel()
	}
}
