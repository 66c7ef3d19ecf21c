package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/internal/cancelctx"
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

	mu         sync.Mutex
	core       *protocol.Core
	leader     Waitable           // of the goroutine in Fabric.Block, or nil
	interrupt  *cancelctx.Context // ends Fabric.Block
	activity   uint64             // number of polls and waits, for PollWhenIdle
	followers  []*follower        // goroutines that wait without leading
	lastWaitID uint64             // ID of the last wait
	active     []ActiveWait       // the current waits
	lastOp     LastOp             // of Send and Receive, for deadlock reports
	pollStats  PollStats          // unsuccessful calls of Test
	snapshot   *waitSnapshot      // in progress, or nil
	closed     bool
}

// A Waitable is a condition that a goroutine waits for. Ready is called with the lock
// held.
type Waitable interface{ Ready() bool }

// A follower is a goroutine that waits without leading.
type follower struct {
	Waitable
	wake chan struct{}
}

var followerPool = sync.Pool{New: func() any { return &follower{wake: make(chan struct{}, 1)} }}

// New returns the engine of a rank. open creates its fabric, whose host is the engine;
// it is not called in a job of one rank.
func New(rank, size int, open func(fabric.Host) (fabric.Fabric, error)) (*Engine, error) {
	e := &Engine{rank: rank, size: size, core: protocol.New(rank, size), interrupt: cancelctx.New(context.Canceled), pollStats: PollStats{round: 1}}
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
	defer e.mu.Unlock()
	f(e.core)
	e.wakeReady()
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
	e.wakeReady()
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
	e.wakeReady()
	return nil
}

// Test reports whether w is ready. If it is not, Test polls the network once.
func (e *Engine) Test(w Waitable) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !w.Ready() && !e.closed {
		e.pollStats.startTest()
		e.pollFabric()
		if !w.Ready() {
			e.pollStats.recordFailedTest(w)
			return false
		}
	} else if e.closed {
		return w.Ready()
	}
	e.lastOp.Calls++
	e.pollStats.recordSuccessfulTest()
	return true
}

// pollFabric polls the network, unless another goroutine leads.
func (e *Engine) pollFabric() {
	e.recordActivity()
	if e.fab != nil && e.leader == nil && e.fab.Poll() {
		e.wakeReady()
	}
}

// Wait blocks until w is ready or ctx ends, and returns the error of ctx in the latter
// case. w may be ready even then.
func (e *Engine) Wait(ctx context.Context, w Waitable) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastOp.Calls++
	if !w.Ready() {
		if err := e.waitUntilReady(ctx, w); err != nil {
			return err
		}
	}
	e.wakeReady() // a follower has to lead now
	return nil
}

// waitUntilReady is Wait for a w that is not ready.
func (e *Engine) waitUntilReady(ctx context.Context, w Waitable) error {
	e.lastWaitID++
	id := e.lastWaitID
	e.active = append(e.active, ActiveWait{id, w})
	defer e.endWait(id)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.closed {
			return ErrClosed
		}
		e.recordActivity()
		e.snapshot.recordStack(id)
		if e.fab != nil {
			e.fab.Flush()
		}
		if e.leader == nil {
			e.serveAsLeader(ctx, w)
		} else {
			e.waitAsFollower(ctx, w)
		}
		if w.Ready() {
			return nil
		}
	}
}

// endWait removes a wait from the current ones.
func (e *Engine) endWait(id uint64) {
	e.active = slices.DeleteFunc(e.active, func(w ActiveWait) bool { return w.ID == id })
	e.snapshot.removeWait(id)
}

// serveAsLeader blocks in the fabric for all waiting goroutines until an event, and
// handles it.
func (e *Engine) serveAsLeader(ctx context.Context, w Waitable) {
	e.leader = w
	kick := e.interrupt
	e.mu.Unlock()
	if done := ctx.Done(); done != nil {
		stop := context.AfterFunc(ctx, kick.Cancel)
		defer stop()
	}
	if e.fab == nil {
		<-kick.Done()
	} else {
		_ = e.fab.Block(kick)
	}
	e.mu.Lock()
	e.leader = nil
	if e.interrupt.Canceled() {
		e.interrupt = cancelctx.New(context.Canceled)
	}
	if e.fab != nil {
		e.fab.Poll()
	}
	e.wakeReady()
}

// waitAsFollower blocks until the leader wakes this goroutine or ctx ends.
func (e *Engine) waitAsFollower(ctx context.Context, w Waitable) {
	me := followerPool.Get().(*follower)
	me.Waitable = w
	e.followers = append(e.followers, me)
	e.mu.Unlock()
	select {
	case <-me.wake:
	case <-ctx.Done():
	}
	e.mu.Lock()
	for i, p := range e.followers {
		if p == me { // ctx ended
			e.followers = append(e.followers[:i], e.followers[i+1:]...)
		}
	}
	select {
	case <-me.wake:
	default:
	}
	me.Waitable = nil
	followerPool.Put(me)
}

// wakeReady wakes the followers whose Waitable is ready and, if there is no leader, one
// follower to lead.
func (e *Engine) wakeReady() {
	if e.leader != nil && e.leader.Ready() {
		e.interrupt.Cancel()
	}
	if len(e.followers) == 0 {
		return
	}
	led := e.leader != nil
	kept := e.followers[:0]
	for _, p := range e.followers {
		if p.Ready() || !led {
			led = true
			p.wake <- struct{}{}
		} else {
			kept = append(kept, p)
		}
	}
	clear(e.followers[len(kept):])
	e.followers = kept
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
		for _, p := range e.followers {
			p.wake <- struct{}{}
		}
		clear(e.followers)
		e.followers = e.followers[:0]
		e.interrupt.Cancel()
	}
	e.mu.Unlock()
	if closed || e.fab == nil {
		return nil
	}
	return e.fab.Close(ctx)
}
