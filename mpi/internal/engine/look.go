package engine

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Waiting is a goroutine that waits.
type Waiting struct {
	ID  uint64 // another for every call of Wait
	For Waitable
}

// Last is the last message that was begun to be sent or received.
type Last struct {
	Calls    uint64 // of Send, Receive, Wait, and Test but for those in vain, so far
	Send     bool
	Peer     int // rank, or match.Any
	Envelope match.Envelope
}

// Look has a look at the network, if nobody else does, and calls f with the lock
// held: who waits, and what was done last. It does nothing when the engine is closed.
func (e *Engine) Look(f func(core *protocol.Core, waiting []Waiting, last Last)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if e.fab != nil && e.leader == nil {
		e.fab.Flush()
		e.fab.Poll()
		e.notify()
	}
	f(e.core, slices.Clone(e.inside), e.last)
	e.notify()
}

// Glance has a look at the network, if nobody else does: for someone who waits
// elsewhere, while others may wait for what comes.
func (e *Engine) Glance() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.poll()
	}
}

// census is the question to all who wait where in the program they are. They answer
// themselves, each in its goroutine, when they are woken for that: so waiting costs
// nothing when nobody asks.
type census struct {
	open   map[uint64]bool // waits without an answer
	places map[uint64][]uintptr
	over   chan struct{} // closed when there are no more of those
}

// depth is how many callers are looked at: the algorithms of collective calls are
// deep.
const depth = 32

// answer is called by who waits. There is nothing to say without a census.
func (c *census) answer(id uint64) {
	if c == nil || !c.open[id] {
		return
	}
	pcs := make([]uintptr, depth)
	c.places[id] = pcs[:runtime.Callers(4, pcs)]
	c.gone(id)
}

// gone is called by who waits no more, and has no answer.
func (c *census) gone(id uint64) {
	if c == nil || !c.open[id] {
		return
	}
	delete(c.open, id)
	if len(c.open) == 0 {
		close(c.over)
	}
}

// censusTime is how long somebody may take to answer: as long as a goroutine that is
// ready to run may have to wait on a machine with much to do.
const censusTime = time.Second

// Census says where those who wait are, by Waiting.ID: program counters as
// runtime.Callers has them, innermost first. Who waits no more has none. It is called
// by one goroutine at a time.
func (e *Engine) Census() map[uint64][]uintptr {
	c := &census{open: map[uint64]bool{}, places: map[uint64][]uintptr{}, over: make(chan struct{})}
	e.mu.Lock()
	for _, w := range e.inside {
		c.open[w.ID] = true
	}
	if len(c.open) == 0 {
		close(c.over)
	}
	e.census = c
	for _, p := range e.parked {
		p.wake <- struct{}{}
	}
	clear(e.parked)
	e.parked = e.parked[:0]
	if e.leader != nil {
		e.kick.Cancel()
	}
	e.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), censusTime)
	defer cancel()
	select {
	case <-c.over:
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.census = nil
	return c.places
}
