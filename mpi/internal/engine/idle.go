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
	e.progress.Notify()
	e.mu.Unlock()
}

// idleInterval is the time without a poll after which PollWhenIdle polls.
const idleInterval = 2 * time.Millisecond

// PollWhenIdle leads when no other goroutine has polled or waited for idleInterval,
// until ctx ends, so that handlers run while the program computes. A goroutine that comes
// to wait takes over. It is called by one goroutine, which must have returned before
// Close is called.
func (e *Engine) PollWhenIdle(ctx context.Context) {
	if e.fab != nil {
		e.progress.RunIdle(ctx, idleInterval)
	}
}
