// Package watch cancels a wait without progress.
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
// A beat is one atomic increment, cheap enough for a measured loop.
package watch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ErrIdle is the cause of a context that ended for lack of beats.
var ErrIdle = errors.New("no progress")

// checksPerLimit is the number of checks within the limit.
const checksPerLimit = 4

// A Watch counts beats.
type Watch struct {
	beats atomic.Uint64
	stop  context.CancelCauseFunc
}

// Start returns a context that is canceled with ErrIdle as its cause after limit without a beat,
// or up to a quarter later. The caller must stop the watch.
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

// Beat records progress.
func (w *Watch) Beat() { w.beats.Add(1) }

// Beats returns the number of beats.
func (w *Watch) Beats() uint64 { return w.beats.Load() }

// Stop ends the watch and cancels the context.
func (w *Watch) Stop() { w.stop(context.Canceled) }
