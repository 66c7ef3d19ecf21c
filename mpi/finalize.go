package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/protocol"
)

// Finalize ends the membership (MPI_Finalize): all ranks call it, and it
// returns when all have. Requests that are not done, and all calls after it, end with
// ErrFinalized. Attributes of Self are freed first. A collective call of which it came out too late that ranks did not agree
// about it is an ErrMismatch here (docs/mpi.md). Deferred, in a rank that panics, it ends the whole job with Abort
// instead, and goes on to panic.
func (w *World) Finalize() error {
	if reason := recover(); reason != nil {
		_ = w.Abort(panicked, fmt.Sprintf("rank %d panics: %v", w.Rank(), reason))
		panic(reason)
	}
	if w.asComm().isNull() {
		return (*Comm)(nil).fail("finalize", "", errNullComm)
	}
	if w.finalized.Load() {
		return w.fail("finalize", "", ErrFinalized)
	}
	w.Self.freeAttrs()
	w.mu.Lock()
	detached := w.detached
	w.mu.Unlock()
	_, sendErr := WaitAll(detached...)
	err, fenced := w.endCalls()
	for _, c := range w.comms.all() {
		if late := c.lateDisagreement(); late != nil {
			err = errors.Join(err, c.fail("finalize", "", late))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	err = errors.Join(sendErr, err, w.release(ctx))
	if !fenced { // the process manager may answer nobody until the fence is over
		return err
	}
	return errors.Join(err, w.manager.Finalize())
}

// panicked is the exit status of a job one of whose ranks panics: Go's.
const panicked = 2

// endCalls makes the last calls, and reports whether no fence is pending at the process
// manager. The flush has all disagreements be known to all before anyone is through the
// barrier. The barrier finds ranks that are lost, which the fence does not, and the fence
// has the last packets of the barrier arrive everywhere.
//
// No error but that of the barrier itself keeps a rank from the fence, where the others
// wait for it. A rank whose barrier has failed tells them that it does not come.
func (w *World) endCalls() (err error, fenced bool) {
	last := barrier()
	last.as, last.last = "finalize", true
	if err = w.lookout.flush(context.Background(), nil); err == nil {
		err = w.do(last)
	}
	if err != nil {
		w.departEarly(err)
		return err, true
	}
	w.lookout.end() // nobody is waited for any more; ranks that go are not missed
	w.eng.End()
	err = w.waitLastFence()
	return err, !errors.Is(err, ErrLost)
}

// departEarly ends all requests of a rank that leaves the job before the others, and tells
// them why it does. It returns when they have heard of it, and all ranks know the
// disagreements that this rank has found, after GiveUp at the latest.
func (w *World) departEarly(why error) {
	ctx, cancel := context.WithTimeout(context.Background(), w.o.GiveUp)
	defer cancel()
	w.lookout.end()
	w.eng.End()
	if w.eng.Wait(ctx, noTransfers{w.eng.Core()}) == nil {
		_ = w.lookout.flush(ctx, why)
	}
}

// noTransfers is the wait until the adapter neither reads nor writes memory for a request
// of this rank: ranks that it tells that it departs give their memory to other uses.
type noTransfers struct{ core *protocol.Core }

// Ready implements engine.Waitable.
func (n noTransfers) Ready() bool {
	_, _, underway := n.core.Pending()
	return underway == 0
}

// lastFence is the wait at the last fence.
type lastFence struct {
	done bool
	err  error
}

// Ready implements engine.Waitable.
func (f *lastFence) Ready() bool { return f.done }

// waitLastFence waits until the last packets of the last barrier have arrived everywhere,
// and handles packets of others meanwhile. All ranks have made all their calls by then, so
// that one that does not come is stopped, unless it has said why.
// Nothing but the fence tells of it: nobody is asked for a sign of life any more.
func (w *World) waitLastFence() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), w.o.GiveUp,
		fmt.Errorf("%w: not all ranks have come %v after their last barrier: one is stopped", ErrLost, w.o.GiveUp))
	defer cancel()
	ctx, breakOff := context.WithCancelCause(ctx)
	defer breakOff(nil)
	w.eng.Do(func(*protocol.Core) {
		if w.lookout.breakFence = breakOff; w.lookout.departed != nil {
			breakOff(w.lookout.departed)
		}
	})
	f := &lastFence{}
	go func() {
		err := w.manager.Fence(ctx)
		w.eng.Do(func(*protocol.Core) { f.done, f.err = true, err })
	}()
	if err := w.eng.Wait(context.Background(), f); err != nil {
		return err
	}
	if f.err != nil && ctx.Err() != nil {
		return fmt.Errorf("mpi: finalize: fence: %w", context.Cause(ctx))
	}
	return f.err
}
