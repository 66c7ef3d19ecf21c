package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/internal/vtime"
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
	fabFailed  bool          // Block has failed; used by the leader in Block

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

// New returns the engine of a rank. open creates its fabric, whose host is the engine;
// it is not called in a job of one rank.
func New(rank, size int, open func(fabric.Host) (fabric.Fabric, error)) (*Engine, error) {
	e := &Engine{rank: rank, size: size, core: protocol.New(rank, size), pollStats: PollStats{round: 1, start: vtime.Now()}}
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

// Core implements fabric.Host.
func (e *Engine) Core() *protocol.Core { return e.core }

// Leading implements fabric.Host.
func (e *Engine) Leading() bool { return e.progress.Leading() }

// Idle implements fabric.Host.
func (e *Engine) Idle() bool { return e.progress.Idle() }

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
