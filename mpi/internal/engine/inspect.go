package engine

import (
	"context"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// An ActiveWait is a call of Wait in progress.
type ActiveWait struct {
	ID     uint64 // unique per call of Wait
	Target Waitable
}

// LastOp is the last send or receive that was started.
type LastOp struct {
	Calls    uint64 // number of calls of Send, Receive, Wait and successful Test
	Send     bool
	Peer     int // rank, or match.Any
	Envelope match.Envelope
}

// Inspect polls the network, unless another goroutine leads, and calls f with the lock
// held, the current waits and the last operation. It does nothing on a closed engine.
func (e *Engine) Inspect(f func(core *protocol.Core, waiting []ActiveWait, last LastOp)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if e.fab != nil && !e.progress.Leading() {
		e.fab.Flush()
		e.progress.Poll()
	}
	active := make([]ActiveWait, len(e.active))
	for i, a := range e.active {
		active[i] = a.ActiveWait
	}
	f(e.core, active, e.lastOp)
	e.progress.Notify()
}

// PollOnce polls the network, unless another goroutine leads. It serves callers that
// wait elsewhere, for example on shared memory.
func (e *Engine) PollOnce() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.progress.Poll()
	}
}

// A waitSnapshot collects the stacks of all waiting goroutines. Each is woken and
// records its own stack, so that waiting costs nothing without a snapshot.
type waitSnapshot struct {
	missing map[uint64]bool // waits that have not recorded their stack
	stacks  map[uint64][]uintptr
	done    chan struct{} // closed when missing is empty
}

// maxStackDepth is the number of callers recorded; collective algorithms nest deeply.
const maxStackDepth = 32

// recordStack records the stack of the calling goroutine. It does nothing without a
// snapshot.
func (c *waitSnapshot) recordStack(id uint64) {
	if c == nil || !c.missing[id] {
		return
	}
	pcs := make([]uintptr, maxStackDepth)
	c.stacks[id] = pcs[:runtime.Callers(3, pcs)]
	c.removeWait(id)
}

// removeWait removes a wait that has ended from the missing ones.
func (c *waitSnapshot) removeWait(id uint64) {
	if c == nil || !c.missing[id] {
		return
	}
	delete(c.missing, id)
	if len(c.missing) == 0 {
		close(c.done)
	}
}

// snapshotTimeout is the time that a goroutine has to record its stack: the latency of
// a runnable goroutine on a loaded machine.
const snapshotTimeout = time.Second

// WaitStacks returns the stacks of the waiting goroutines by ActiveWait.ID: program
// counters as of runtime.Callers, innermost first. A wait that ended meanwhile has
// none. It is called by one goroutine at a time.
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
	e.progress.Interrupt()
	e.mu.Unlock()

	ctx, cancel := vtime.WithTimeout(context.Background(), snapshotTimeout)
	defer cancel()
	vtime.WaitUntil(func() bool { return vtime.IsClosed(c.done) || ctx.Err() != nil })
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.snapshot = nil
	return c.stacks
}
