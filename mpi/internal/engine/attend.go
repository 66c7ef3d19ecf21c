package engine

import (
	"context"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Lock gives the caller the Core until Unlock. It returns ErrClosed, and nothing
// is locked, when the engine is closed.
func (e *Engine) Lock() (*protocol.Core, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, ErrClosed
	}
	return e.core, nil
}

// Unlock is the end of Lock. It wakes those whose wait has come to its end.
func (e *Engine) Unlock() {
	e.wakeReady()
	e.mu.Unlock()
}

// idleInterval is how long nobody may look at the network before Attend does.
const idleInterval = 2 * time.Millisecond

// idlePoller leads those who do not wait.
type idlePoller struct{}

func (idlePoller) Ready() bool { return false }

// PollWhenIdle looks at the network when nobody else has done so for a while, until ctx
// ends or the engine is closed: so that handlers are called although the program
// computes. Who comes to wait takes its place. It is called by one goroutine, which
// has ended when Close is called.
func (e *Engine) PollWhenIdle(ctx context.Context) {
	tick := time.NewTicker(idleInterval)
	defer tick.Stop()
	for last := uint64(0); e.fab != nil; {
		e.mu.Lock()
		for !e.closed && ctx.Err() == nil && e.leader == nil && e.activity == last {
			e.fab.Flush()
			e.serveAsLeader(ctx, idlePoller{})
		}
		last = e.activity
		e.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// recordActivity is called by those who look at the network, or are going to wait.
func (e *Engine) recordActivity() {
	e.activity++
	if e.leader == Waitable(idlePoller{}) {
		e.interrupt.Cancel()
	}
}
