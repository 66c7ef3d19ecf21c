package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// ErrClosed is returned by calls of a closed engine.
var ErrClosed = errors.New("mpi: finalized")

// An Engine is a rank: its protocol, its fabric and its waiting goroutines. All methods
// are safe for concurrent use.
type Engine struct {
	rank, size int
	fab        fabric.Fabric // nil in a job of one rank

	mu        sync.Mutex
	core      *protocol.Core
	progress  *progress.Engine
	active    []*activeWait // the current waits
	spare     []*activeWait // for reuse
	waits     uint64        // number of waits, the ID of the last one
	lastOp    LastOp        // of Send and Receive, for deadlock reports
	pollStats PollStats     // unsuccessful calls of Test
	snapshot  *waitSnapshot // in progress, or nil
	closed    bool
}

// A Waitable is a condition that a goroutine waits for. Ready is called with the lock
// held.
type Waitable = progress.Waitable

// New returns the engine of a rank. open creates its fabric, whose host is the engine;
// it is not called in a job of one rank.
func New(rank, size int, open func(fabric.Host) (fabric.Fabric, error)) (*Engine, error) {
	e := &Engine{rank: rank, size: size, core: protocol.New(rank, size), pollStats: PollStats{round: 1, start: time.Now()}}
	e.progress = progress.New(&e.mu, (*source)(e))
	if size > 1 {
		e.mu.Lock() // early connections wait for Attach
		defer e.mu.Unlock()
		var err error
		if e.fab, err = open(e); err != nil {
			return nil, err
		}
		e.core.Attach(e.fab)
	}
	return e, nil
}

// Rank and Size return the rank and the size of the job.
func (e *Engine) Rank() int { return e.rank }
func (e *Engine) Size() int { return e.size }

// Fabric returns the fabric of the rank, or nil in a job of one rank.
func (e *Engine) Fabric() fabric.Fabric { return e.fab }

// Do implements fabric.Host.
func (e *Engine) Do(f func(*protocol.Core)) {
	e.mu.Lock()
	defer e.Unlock() // also if f panics: it may have made a Waitable ready
	f(e.core)
}

// Core implements fabric.Host.
func (e *Engine) Core() *protocol.Core { return e.core }

// Send starts a send.
func (e *Engine) Send(r *protocol.Request) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.lastOp = LastOp{Calls: e.lastOp.Calls + 1, Send: true, Peer: r.Dest, Envelope: r.Envelope}
	e.core.Send(r)
	e.progress.Notify()
	return nil
}

// Receive starts a receive.
func (e *Engine) Receive(r *protocol.Request) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.lastOp = LastOp{Calls: e.lastOp.Calls + 1, Peer: int(r.Envelope.Source), Envelope: r.Envelope}
	e.core.Receive(r)
	e.progress.Notify()
	return nil
}

// Test reports whether w is ready. If it is not, Test polls the network once.
func (e *Engine) Test(w Waitable) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !w.Ready() && !e.closed {
		start := e.pollStats.startTest()
		e.progress.Poll()
		if !w.Ready() {
			e.pollStats.recordFailedTest(w, start)
			return false
		}
	} else if e.closed {
		return w.Ready()
	}
	e.lastOp.Calls++
	return true
}

// Wait blocks until w is ready or ctx ends, and returns the error of ctx in the latter
// case. w may be ready even then.
func (e *Engine) Wait(ctx context.Context, w Waitable) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastOp.Calls++
	if w.Ready() {
		e.progress.Notify()
		return nil
	}
	a := e.newActiveWait(w)
	defer e.endWait(a)
	if err := e.progress.Wait(ctx, a); err != nil {
		return err
	}
	if !w.Ready() {
		return ErrClosed
	}
	return nil
}

// An activeWait is a call of Wait in progress. It is ready when its target is, or when
// the engine is closed.
type activeWait struct {
	e *Engine
	ActiveWait
}

// Ready implements Waitable.
func (a *activeWait) Ready() bool { return a.Target.Ready() || a.e.closed }

// newActiveWait adds a wait to the current ones.
func (e *Engine) newActiveWait(w Waitable) *activeWait {
	a := &activeWait{e: e}
	if n := len(e.spare); n > 0 {
		a, e.spare = e.spare[n-1], e.spare[:n-1]
	}
	e.waits++
	a.ActiveWait = ActiveWait{e.waits, w}
	e.active = append(e.active, a)
	return a
}

// endWait removes a wait from the current ones.
func (e *Engine) endWait(a *activeWait) {
	i := slices.Index(e.active, a)
	e.active = slices.Delete(e.active, i, i+1)
	e.snapshot.removeWait(a.ID)
	a.Target = nil
	e.spare = append(e.spare, a)
}

// source is the fabric as the progress engine's Source.
type source Engine

// Prepare implements progress.Source.
func (s *source) Prepare(w progress.Waitable) {
	if a, ok := w.(*activeWait); ok {
		s.snapshot.recordStack(a.ID)
	}
	if s.fab != nil {
		s.fab.Flush()
	}
}

// Poll implements progress.Source.
func (s *source) Poll() bool { return s.fab != nil && s.fab.Poll() }

// Block implements progress.Source. A fabric that fails ends the requests, and so
// the waits for them.
func (s *source) Block(ctx context.Context) error {
	if s.fab == nil {
		<-ctx.Done()
	} else {
		_ = s.fab.Block(ctx)
	}
	return nil
}

// FailAll fails, with ErrClosed, all requests that are not done and all that start
// later. Packets of other ranks are handled until Close.
func (e *Engine) FailAll() { e.Do(func(core *protocol.Core) { core.FailAll(ErrClosed) }) }

// Close closes the engine and its fabric. All current and later waits return ErrClosed,
// unless their Waitable is ready.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	closed := e.closed
	if !closed {
		e.core.FailAll(ErrClosed)
		e.closed = true
		e.progress.Notify()
	}
	e.mu.Unlock()
	if closed || e.fab == nil {
		return nil
	}
	return e.fab.Close(ctx)
}
