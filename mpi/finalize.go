package mpi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Finalize leaves the job (MPI_Finalize). All ranks call it; it returns after all have called
// it. It frees the attributes of Self first. Requests that are not done, and all later calls,
// end with ErrFinalized, a second Finalize too. If the calls of an earlier collective call did not match and no later
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
func (j *job) finalize(ctx context.Context) error {
	j.self.freeAttrs()
	stop := context.AfterFunc(ctx, j.eng.FailAll)
	defer stop()
	j.mu.Lock()
	detached := j.detached
	j.mu.Unlock()
	_, sendErr := WaitAll(detached...)
	fenced, err := j.synchronizeLast(ctx)
	if ended := context.Cause(ctx); ended != nil && err != nil {
		return errors.Join(j.comm.fail("finalize", "", ended), j.releaseResources(context.WithoutCancel(ctx)))
	}
	err = errors.Join(append([]error{err}, j.calls.LateMismatches("finalize")...)...)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = errors.Join(sendErr, err, j.releaseResources(ctx))
	if !fenced { // the process manager may not reply before the fence completes
		return err
	}
	return errors.Join(err, j.manager.Finalize())
}

// synchronizeLast synchronizes the ranks for the last time, and reports whether no fence is
// pending at the process manager. The flush makes all mismatches known to all ranks; the barrier
// detects lost ranks, which the fence does not; the fence completes after the last packets of the
// barrier have arrived.
//
// If the flush or the barrier fails, the rank does not join the fence, where the others wait for
// it, but announces its departure.
func (j *job) synchronizeLast(ctx context.Context) (fenced bool, err error) {
	if err = j.detector.Flush(ctx, j.comm.Name()); err == nil {
		err = j.comm.runBlocking(collective.FinalizeOp())
	}
	if ended := context.Cause(ctx); err != nil && ended != nil {
		j.detector.AnnounceDeparture(ended, min(departTimeout, j.o.GiveUp))
		return true, err
	}
	if err != nil {
		j.detector.AnnounceDeparture(err, j.o.GiveUp)
		return true, err
	}
	j.detector.Stop() // ranks that exit from now on are not failures
	j.eng.FailAll()
	err = j.waitLastFence(ctx)
	return !errors.Is(err, ErrLost), err
}

// departTimeout is the maximum time to wait for the replies to the departure of a rank whose
// context has ended.
const departTimeout = time.Second

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
func (j *job) waitLastFence(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, j.o.GiveUp,
		fmt.Errorf("%w: a rank has not arrived %v after the last barrier", ErrLost, j.o.GiveUp))
	defer cancel()
	ctx, cancelFence := context.WithCancelCause(ctx)
	defer cancelFence(nil)
	j.detector.OnDeparture(cancelFence)
	f := &fenceWait{}
	go func() {
		err := j.manager.Fence(ctx)
		j.eng.Do(func(*protocol.Core) { f.done, f.err = true, err })
	}()
	if err := j.eng.Wait(context.Background(), f); err != nil {
		return err
	}
	if f.err != nil && ctx.Err() != nil {
		return j.comm.fail("finalize", "fence", context.Cause(ctx))
	}
	return f.err
}
