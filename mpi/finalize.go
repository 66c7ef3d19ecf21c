package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/protocol"
)

// Finalize leaves the job (MPI_Finalize). All ranks call it, and it returns when all have.
// Pending requests, and all later calls, end with ErrFinalized. Attributes of Self are freed
// first. A disagreement about an earlier collective call that no call has returned yet is an
// ErrMismatch here (docs/mpi.md). A deferred Finalize in a rank that panics ends the whole job
// by Abort and lets the panic continue.
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

// panicked is the exit status of a job in which a rank panics, the same as Go's.
const panicked = 2

// endCalls synchronizes the ranks for the last time, and reports whether no fence is pending
// at the process manager. Three steps: the flush makes all disagreements known to all ranks;
// the barrier detects lost ranks, which the fence does not; the fence makes sure that the
// last packets of the barrier have arrived.
//
// Only an error of the flush or of the barrier keeps a rank from the fence, where the others
// wait for it. Such a rank announces its departure.
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

// departEarly ends all requests of this rank and announces to the others why it leaves the
// job before them. It returns when they have replied and all ranks know the disagreements
// that this rank has found, after GiveUp at the latest.
func (w *World) departEarly(why error) {
	ctx, cancel := context.WithTimeout(context.Background(), w.o.GiveUp)
	defer cancel()
	w.lookout.end()
	w.eng.End()
	if w.eng.Wait(ctx, noTransfers{w.eng.Core()}) == nil {
		_ = w.lookout.flush(ctx, why)
	}
}

// A noTransfers waits until no RDMA of this rank's requests is in flight: ranks that know of
// the departure may reuse their memory.
type noTransfers struct{ core *protocol.Core }

// Ready implements engine.Waitable.
func (n noTransfers) Ready() bool {
	_, _, underway := n.core.Pending()
	return underway == 0
}

// A lastFence waits for the last fence.
type lastFence struct {
	done bool
	err  error
}

// Ready implements engine.Waitable.
func (f *lastFence) Ready() bool { return f.done }

// waitLastFence joins the last fence, after which the last packets of the last barrier have
// arrived everywhere, and handles packets of others meanwhile. All ranks have made their last
// call by then and send no more signs of life. A rank that does not join within GiveUp is
// stopped, unless it has announced its departure.
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
