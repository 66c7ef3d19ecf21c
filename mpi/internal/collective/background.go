package collective

import (
	"context"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Background is a call that a goroutine executes.
type Background struct {
	done   bool // guarded by the engine's lock
	err    error
	doneCh chan struct{} // closed when the call is done

	waiters atomic.Int32 // number of goroutines of the program that wait for it
}

func newBackground() *Background { return &Background{doneCh: make(chan struct{})} }

// completeCall marks the call as done and wakes its waiters.
func (b *Background) completeCall(e *engine.Engine, err error) {
	e.Do(func(*protocol.Core) { b.done, b.err = true, err })
	close(b.doneCh)
}

// IsDone reports whether the call is done. The caller holds the engine's lock.
func (b *Background) IsDone() bool { return b.done }

// Err returns the error of a call that is done.
func (b *Background) Err() error { return b.err }

// Wait waits until the call is done or ctx ends, and returns the error of ctx. The goroutine of
// the call drives progress, so an arriving message wakes only one goroutine.
func (b *Background) Wait(ctx context.Context) error {
	b.waiters.Add(1)
	defer b.waiters.Add(-1)
	if vtime.OnSimulatedHost() { // otherwise the function would be allocated
		vtime.WaitUntil(func() bool { return vtime.IsClosed(b.doneCh) || ctx.Err() != nil })
	}
	select {
	case <-b.doneCh:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
