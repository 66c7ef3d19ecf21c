package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/collective"
	"github.com/softrnic/softrnic/mpi/internal/membership"
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
	if w.world.Ended.Load() {
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
	stop := context.AfterFunc(ctx, j.Engine.FailAll)
	defer stop()
	sendErr := j.messages.WaitBuffered()
	fenced, err := j.Synchronize(ctx, membership.LastCalls{
		Name:    j.comm.Name(),
		Barrier: func() error { return j.comm.runBlocking(collective.FinalizeOp()) },
		Fail:    func(step string, err error) error { return j.comm.fail("finalize", step, err) },
	})
	if ended := context.Cause(ctx); ended != nil && err != nil {
		return errors.Join(j.comm.fail("finalize", "", ended), j.Close(context.WithoutCancel(ctx)))
	}
	err = errors.Join(append([]error{err}, j.Calls.LateMismatches("finalize")...)...)
	ctx, cancel := vtime.WithTimeout(ctx, membership.StartTimeout)
	defer cancel()
	err = errors.Join(sendErr, err, j.Close(ctx))
	if !fenced { // the process manager may not reply before the fence completes
		return err
	}
	return errors.Join(err, j.Manager.Finalize())
}
