package tcp

import (
	"context"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/sched"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
)

const (
	// spinTime is the time that Block polls before it sleeps.
	spinTime = 50 * time.Microsecond

	// idleInterval is the time without a poll after which a goroutine handles packets that
	// arrives while the program computes.
	idleInterval = 10 * time.Millisecond

	// batchTime is the maximum delay of coalesced packets while the program computes.
	batchTime = 50 * time.Microsecond
)

// yieldAfter is the number of consecutive polls without events after which Poll yields.
const yieldAfter = 64

// Poll implements fabric.Fabric.
func (f *Fabric) Poll() bool {
	if f.poller == nil || f.closed.Load() {
		f.Flush()
		return false // goroutines have handled all events
	}
	if len(f.batched) > 0 {
		f.Flush()
	}
	some := f.hasEvents() || f.pollSockets()
	f.handleEvents()
	f.Flush()
	if some {
		f.idle = 0
	} else if f.idle++; f.idle > yieldAfter {
		f.yieldWhenIdle()
	}
	return some
}

// yieldWhenIdle yields to other goroutines and, as there may be more threads than
// processors, to other threads.
func (f *Fabric) yieldWhenIdle() {
	if f.idle%16 == 0 {
		runtime.Gosched()
	}
	if f.idle%4 == 0 {
		sched.Yield()
	}
}

// Block implements fabric.Fabric. It spins, yields to processes that share its processor,
// and then sleeps in the system.
func (f *Fabric) Block(ctx context.Context) error {
	if f.poller == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	f.blocking.Lock()
	defer f.blocking.Unlock()
	w := f.spinner.StartWait()
	for polls := 0; ; polls++ {
		if f.closed.Load() {
			return fabric.ErrClosed
		}
		if polls > 0 || !f.spinner.Shared { // with a shared processor, yield first
			f.pollSockets()
		}
		if f.hasEvents() {
			if w.AfterSleep(true); w.Spun() {
				f.spinner.RecordHit()
			}
			return nil
		}
		w.AfterSleep(false)
		if polls%16 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if w.KeepSpinning(false) {
			if polls%64 == 63 {
				runtime.Gosched()
			}
			w.YieldIfShared(false, false)
			continue
		}
		if err := f.sleepInPoller(ctx, &w); err != nil {
			return err
		}
	}
}

// sleepInPoller waits until a socket has events, ctx ends or the fabric is closed. Other
// goroutines run first, which the system call would keep from their processor.
func (f *Fabric) sleepInPoller(ctx context.Context, w *sched.Spin) (err error) {
	runtime.Gosched()
	runtime.Gosched()
	stop := context.AfterFunc(ctx, f.poller.wakeWaiter)
	defer stop()
	if err := ctx.Err(); err != nil {
		return err
	}
	w.BeginSleep()
	f.ready, err = f.poller.waitEvents(false)
	w.EndSleep()
	return err
}
