package mpi

import (
	"context"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// background is a call that a goroutine executes.
type background struct {
	done   bool // guarded by the engine's lock
	err    error
	doneCh chan struct{} // closed when the call is done

	waiters atomic.Int32 // number of goroutines of the program that wait for it
}

func newBackground() *background { return &background{doneCh: make(chan struct{})} }

// Start starts a nonblocking call, which a goroutine executes. With Options.Check a call with
// invalid arguments is started, too, and Start returns their error.
func (c *collectiveComm) Start(o *collectiveOp) (*background, error) {
	o.form = nonblocking
	k, err := c.beginCall(o)
	if err != nil {
		return nil, err
	}
	b, refused := newBackground(), k.argErr
	k.background = b
	go func() {
		err := errNoReturn
		defer func() { // also if a function of the program calls runtime.Goexit
			c.endCall(k, err)
			b.complete(c, err)
		}()
		if err = k.run(); err != nil {
			err = c.fail(k.op.Name(), k.op.Root(), err)
		}
	}()
	return b, refused
}

// complete marks the call as done and wakes its waiters.
func (b *background) complete(c *collectiveComm, err error) {
	c.Engine.Do(func(*protocol.Core) { b.done, b.err = true, err })
	close(b.doneCh)
}

// Done reports whether the call is done. The caller holds the engine's lock.
func (b *background) Done() bool { return b.done }

// Err returns the error of a call that is done.
func (b *background) Err() error { return b.err }

// Wait waits until the call is done or ctx ends, and returns the error of ctx. The goroutine of
// the call drives progress, so an arriving message wakes only one goroutine.
func (b *background) Wait(ctx context.Context) error {
	b.waiters.Add(1)
	defer b.waiters.Add(-1)
	select {
	case <-b.doneCh:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
