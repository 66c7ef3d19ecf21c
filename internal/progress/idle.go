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
	w := &idleWait{e: e}
	for {
		if !w.serve(ctx) {
			return
		}
		vtime.WaitUntil(func() bool { return ctx.Err() != nil || len(tick.C) > 0 })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// An idleWait is ready when another goroutine has polled or waited since last.
type idleWait struct {
	e    *Engine
	last uint64
}

// Ready implements Waitable.
func (w *idleWait) Ready() bool { return w.e.activity != w.last }

// serve leads if there was no activity since the previous call. It reports whether
// another call makes sense.
func (w *idleWait) serve(ctx context.Context) bool {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	var err error
	if !w.Ready() && w.e.leader == nil && ctx.Err() == nil {
		w.e.idle = true
		defer func() { w.e.idle = false }()
		w.e.src.Prepare(w)
		err = w.e.lead(ctx, w)
	}
	w.last = w.e.activity
	return err == nil
}

// Idle reports whether RunIdle handles events, and no goroutine has come to wait or poll.
func (e *Engine) Idle() bool { return e.idle }

// recordActivity is called by each poll and wait. It ends the lead of RunIdle.
func (e *Engine) recordActivity() {
	e.activity++
	e.idle = false
	if w, ok := e.leader.(*idleWait); ok && w.Ready() {
		e.ctx.kick.Cancel()
	}
}
