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
	e.notify()
	e.mu.Unlock()
}

// patience is how long nobody may look at the network before Attend does.
const patience = 2 * time.Millisecond

// attendant leads those who do not wait.
type attendant struct{}

func (attendant) Ready() bool { return false }

// Attend looks at the network when nobody else has done so for a while, until ctx
// ends or the engine is closed: so that handlers are called although the program
// computes. Who comes to wait takes its place. It is called by one goroutine, which
// has ended when Close is called.
func (e *Engine) Attend(ctx context.Context) {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for last := uint64(0); e.fab != nil; {
		e.mu.Lock()
		for !e.closed && ctx.Err() == nil && e.leader == nil && e.visits == last {
			e.fab.Flush()
			e.lead(ctx, attendant{})
		}
		last = e.visits
		e.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// visit is called by those who look at the network, or are going to wait.
func (e *Engine) visit() {
	e.visits++
	if e.leader == Waitable(attendant{}) {
		e.kick.Cancel()
	}
}
