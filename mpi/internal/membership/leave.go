package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// LastCalls are the calls of the communicator of all ranks at the end of a job.
type LastCalls struct {
	Name    string                             // of the communicator, for reports
	Barrier func() error                       // the last barrier, which no other call matches
	Fail    func(step string, err error) error // returns the error of Finalize
}

// Synchronize synchronizes the ranks for the last time, by a flush, a barrier of all ranks and a
// fence, and reports whether no fence is pending at the process manager.
//
// If the flush or the barrier fails, the rank does not join the fence, where the others wait for
// it, but announces its departure.
func (m *Membership) Synchronize(ctx context.Context, c LastCalls) (fenced bool, err error) {
	if err = m.Detector.Flush(ctx, c.Name); err == nil {
		err = c.Barrier()
	}
	if ended := context.Cause(ctx); err != nil && ended != nil {
		m.Detector.AnnounceDeparture(ended, min(departTimeout, m.giveUp))
		return true, err
	}
	if err != nil {
		m.Detector.AnnounceDeparture(err, m.giveUp)
		return true, err
	}
	m.Detector.Stop() // ranks that exit from now on are not failures
	m.Engine.FailAll()
	err = m.waitLastFence(ctx, c)
	return !errors.Is(err, protocol.ErrLost), err
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
// join within the time to give up, the error is protocol.ErrLost.
func (m *Membership) waitLastFence(ctx context.Context, c LastCalls) error {
	ctx, cancel := vtime.WithTimeoutCause(ctx, m.giveUp,
		fmt.Errorf("%w: a rank has not arrived %v after the last barrier", protocol.ErrLost, m.giveUp))
	defer cancel()
	ctx, cancelFence := context.WithCancelCause(ctx)
	defer cancelFence(nil)
	m.Detector.OnDeparture(cancelFence)
	f := &fenceWait{}
	vtime.Go(func() {
		err := m.Manager.Fence(ctx)
		m.Engine.Do(func(*protocol.Core) { f.done, f.err = true, err })
	})
	if err := m.Engine.Wait(context.Background(), f); err != nil {
		return err
	}
	if f.err != nil && ctx.Err() != nil {
		return c.Fail("fence", context.Cause(ctx))
	}
	return f.err
}
