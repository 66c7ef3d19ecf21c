package mpi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Finalize leaves the job (MPI_Finalize). All ranks call it; it returns after all have called
// it. It frees the attributes of Self first. Requests that are not done, and all later calls,
// end with ErrFinalized. If the calls of an earlier collective call did not match and no later
// call returned that, Finalize returns an ErrMismatch (docs/mpi.md).
//
// When Finalize is deferred and the rank panics, it aborts the job and continues to panic.
// It waits without a limit for a rank that computes; see FinalizeContext.
func (w World) Finalize() error {
	if reason := recover(); reason != nil {
		_ = w.Abort(panicExitCode, fmt.Sprintf("rank %d panics: %v", w.Rank(), reason))
		panic(reason)
	}
	return w.FinalizeContext(context.Background())
}

// FinalizeContext is Finalize that ends when ctx ends; a nil ctx never ends. It then returns
// ctx's error, and the rank leaves the job without waiting for the others, which lose it. Unlike
// a deferred Finalize, it does not abort the job at a panic.
func (w World) FinalizeContext(ctx context.Context) error {
	if w.isNull() {
		return w.fail("finalize", "", errNullComm)
	}
	if w.world.finalized.Load() {
		return w.fail("finalize", "", ErrFinalized)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	return w.world.finalize(ctx)
}

// panicExitCode is the exit status of a job after a panic, as of a Go program.
const panicExitCode = 2

// finalize is World.FinalizeContext.
func (w *job) finalize(ctx context.Context) error {
	w.self.freeAttrs()
	stop := context.AfterFunc(ctx, w.eng.FailAll)
	defer stop()
	w.mu.Lock()
	detached := w.detached
	w.mu.Unlock()
	_, sendErr := WaitAll(detached...)
	err, fenced := w.synchronizeLast(ctx)
	if ended := context.Cause(ctx); ended != nil && err != nil {
		return errors.Join(w.comm.fail("finalize", "", ended), w.releaseResources(context.WithoutCancel(ctx)))
	}
	for _, c := range w.comms.all() {
		if mismatch := c.lateMismatch(); mismatch != nil {
			err = errors.Join(err, c.fail("finalize", "", mismatch))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = errors.Join(sendErr, err, w.releaseResources(ctx))
	if !fenced { // the process manager may not reply before the fence completes
		return err
	}
	return errors.Join(err, w.manager.Finalize())
}

// synchronizeLast synchronizes the ranks for the last time, and reports whether no fence is
// pending at the process manager. The flush makes all mismatches known to all ranks; the barrier
// detects lost ranks, which the fence does not; the fence completes after the last packets of the
// barrier have arrived.
//
// If the flush or the barrier fails, the rank does not join the fence, where the others wait for
// it, but announces its departure.
func (w *job) synchronizeLast(ctx context.Context) (err error, fenced bool) {
	last := barrierOp()
	last.calledAs, last.isFinalize = "finalize", true
	if err = w.detector.flushPackets(ctx, nil); err == nil {
		err = w.comm.runBlocking(last)
	}
	if ended := context.Cause(ctx); err != nil && ended != nil {
		w.departEarly(ended, min(departTimeout, w.o.GiveUp))
		return err, true
	}
	if err != nil {
		w.departEarly(err, w.o.GiveUp)
		return err, true
	}
	w.detector.stop() // ranks that exit from now on are not failures
	w.eng.FailAll()
	err = w.waitLastFence(ctx)
	return err, !errors.Is(err, ErrLost)
}

// departTimeout is the maximum time to wait for the replies to the departure of a rank whose
// context has ended.
const departTimeout = time.Second

// departEarly fails all requests of this rank and announces to the others why it leaves the
// job before them. It returns when they have replied and all ranks know the mismatches that
// this rank has found, after timeout at the latest.
func (w *job) departEarly(cause error, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	w.detector.stop()
	w.eng.FailAll()
	if w.eng.Wait(ctx, noTransfers{w.eng.Core()}) == nil {
		_ = w.detector.flushPackets(ctx, cause)
	}
}

// noTransfers is the condition that no RDMA of this rank's requests is in flight: ranks that
// know of the departure may reuse their memory.
type noTransfers struct{ core *protocol.Core }

// Ready implements engine.Waitable.
func (n noTransfers) Ready() bool {
	_, _, inFlight := n.core.Pending()
	return inFlight == 0
}

// A fenceWait is the condition that the last fence is complete.
type fenceWait struct {
	done bool
	err  error
}

// Ready implements engine.Waitable.
func (f *fenceWait) Ready() bool { return f.done }

// waitLastFence joins the last fence and handles packets of other ranks until it is complete:
// the last packets of the last barrier have arrived at all ranks then. All ranks have made all
// their calls and send no more liveness probes. If a rank has announced its departure, or does not
// join within Options.GiveUp, the error is ErrLost.
func (w *job) waitLastFence(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, w.o.GiveUp,
		fmt.Errorf("%w: a rank has not arrived %v after the last barrier", ErrLost, w.o.GiveUp))
	defer cancel()
	ctx, breakOff := context.WithCancelCause(ctx)
	defer breakOff(nil)
	w.eng.Do(func(*protocol.Core) {
		if w.detector.breakFence = breakOff; w.detector.departed != nil {
			breakOff(w.detector.departed)
		}
	})
	f := &fenceWait{}
	go func() {
		err := w.manager.Fence(ctx)
		w.eng.Do(func(*protocol.Core) { f.done, f.err = true, err })
	}()
	if err := w.eng.Wait(context.Background(), f); err != nil {
		return err
	}
	if f.err != nil && ctx.Err() != nil {
		return w.comm.fail("finalize", "fence", context.Cause(ctx))
	}
	return f.err
}
