package engine

import (
	"context"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Lock acquires the lock and returns the Core, for use until Unlock. If the engine is
// closed it returns ErrClosed without the lock.
func (e *Engine) Lock() (*protocol.Core, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, ErrClosed
	}
	return e.core, nil
}

// Unlock releases the lock and wakes the goroutines whose Waitable is ready.
func (e *Engine) Unlock() {
	e.wakeReady()
	e.mu.Unlock()
}

// idleInterval is the time without a poll after which PollWhenIdle polls.
const idleInterval = 2 * time.Millisecond

// An idlePoller is the Waitable of PollWhenIdle, which is never ready.
type idlePoller struct{}

func (idlePoller) Ready() bool { return false }

// PollWhenIdle leads when no other goroutine has polled or waited for idleInterval,
// until ctx ends or the engine is closed, so that handlers run while the program
// computes. A goroutine that comes to wait takes over. It is called by one goroutine,
// which must have returned before Close is called.
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

// recordActivity is called by each poll and wait. It ends an idlePoller's lead.
func (e *Engine) recordActivity() {
	e.activity++
	if e.leader == Waitable(idlePoller{}) {
		e.interrupt.Cancel()
	}
}
