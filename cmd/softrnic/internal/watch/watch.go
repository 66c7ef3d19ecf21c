// Package watch ends a wait that nothing happens in.
//
//	ctx, w := watch.Start(ctx, time.Minute)
//	defer w.Stop()
//	for !done() && ctx.Err() == nil {
//		if work() {
//			w.Beat()
//		}
//	}
//	return context.Cause(ctx) // ErrIdle after a minute without a beat
//
// A beat is an increment, so that it can stand in a loop that is measured.
package watch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ErrIdle is the cause of the end of a context in which nothing happened.
var ErrIdle = errors.New("no progress")

// checksPerLimit is how often an interval looks for beats, at least.
const checksPerLimit = 4

// A Watch counts beats.
type Watch struct {
	beats atomic.Uint64
	stop  context.CancelCauseFunc
}

// Start returns a context that ends with ErrIdle as its cause when there is no
// beat for limit, or up to a quarter longer. It must be stopped.
func Start(ctx context.Context, limit time.Duration) (context.Context, *Watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Watch{stop: cancel}
	go w.monitor(ctx, limit)
	return ctx, w
}

func (w *Watch) monitor(ctx context.Context, limit time.Duration) {
	t := time.NewTicker(max(limit/checksPerLimit, 1))
	defer t.Stop()
	for last, idle := w.beats.Load(), 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now := w.beats.Load()
		if idle++; now != last {
			last, idle = now, 0
		}
		if idle > checksPerLimit {
			w.stop(ErrIdle)
		}
	}
}

// Beat tells that something has happened.
func (w *Watch) Beat() { w.beats.Add(1) }

// Beats is how many beats there were.
func (w *Watch) Beats() uint64 { return w.beats.Load() }

// Stop ends the watch, and the context.
func (w *Watch) Stop() { w.stop(context.Canceled) }
