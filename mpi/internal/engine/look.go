package engine

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// ActiveWait is a goroutine that waits.
type ActiveWait struct {
	ID     uint64 // another for every call of Wait
	Target Waitable
}

// LastOp is the last message that was begun to be sent or received.
type LastOp struct {
	Calls    uint64 // of Send, Receive, Wait, and Test but for those in vain, so far
	Send     bool
	Peer     int // rank, or match.Any
	Envelope match.Envelope
}

// Inspect has a look at the network, if nobody else does, and calls f with the lock
// held: who waits, and what was done last. It does nothing when the engine is closed.
func (e *Engine) Inspect(f func(core *protocol.Core, waiting []ActiveWait, last LastOp)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if e.fab != nil && e.leader == nil {
		e.fab.Flush()
		e.fab.Poll()
		e.wakeReady()
	}
	f(e.core, slices.Clone(e.active), e.lastOp)
	e.wakeReady()
}

// PollOnce has a look at the network, if nobody else does: for someone who waits
// elsewhere, while others may wait for what comes.
func (e *Engine) PollOnce() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.pollFabric()
	}
}

// waitSnapshot is the question to all who wait where in the program they are. They answer
// themselves, each in its goroutine, when they are woken for that: so waiting costs
// nothing when nobody asks.
type waitSnapshot struct {
	missing map[uint64]bool // waits without an answer
	stacks  map[uint64][]uintptr
	done    chan struct{} // closed when there are no more of those
}

// maxStackDepth is how many callers are looked at: the algorithms of collective calls are
// deep.
const maxStackDepth = 32

// recordStack is called by who waits. There is nothing to say without a census.
func (c *waitSnapshot) recordStack(id uint64) {
	if c == nil || !c.missing[id] {
		return
	}
	pcs := make([]uintptr, maxStackDepth)
	c.stacks[id] = pcs[:runtime.Callers(4, pcs)]
	c.removeWait(id)
}

// removeWait is called by who waits no more, and has no answer.
func (c *waitSnapshot) removeWait(id uint64) {
	if c == nil || !c.missing[id] {
		return
	}
	delete(c.missing, id)
	if len(c.missing) == 0 {
		close(c.done)
	}
}

// snapshotTimeout is how long somebody may take to answer: as long as a goroutine that is
// ready to run may have to wait on a machine with much to do.
const snapshotTimeout = time.Second

// WaitStacks says where those who wait are, by Waiting.ID: program counters as
// runtime.Callers has them, innermost first. Who waits no more has none. It is called
// by one goroutine at a time.
func (e *Engine) WaitStacks() map[uint64][]uintptr {
	c := &waitSnapshot{missing: map[uint64]bool{}, stacks: map[uint64][]uintptr{}, done: make(chan struct{})}
	e.mu.Lock()
	for _, w := range e.active {
		c.missing[w.ID] = true
	}
	if len(c.missing) == 0 {
		close(c.done)
	}
	e.snapshot = c
	for _, p := range e.followers {
		p.wake <- struct{}{}
	}
	clear(e.followers)
	e.followers = e.followers[:0]
	if e.leader != nil {
		e.interrupt.Cancel()
	}
	e.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), snapshotTimeout)
	defer cancel()
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.snapshot = nil
	return c.stacks
}
