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

// ErrClosed is what calls of a closed engine return.
var ErrClosed = errors.New("MPI is finalized")

// Engine is a rank: its protocol, its fabric, and those who wait. Whoever has
// to wait serves the fabric for all, one at a time. All methods may be called
// from any goroutine.
type Engine struct {
	rank, size int
	fab        fabric.Fabric // nil if there are no others

	mu         sync.Mutex
	core       *protocol.Core
	leader     Waitable           // of who is in Fabric.Block, or nil
	interrupt  *cancelctx.Context // ends the Block
	activity   uint64             // of those who look or wait, for Attend
	followers  []*follower        // those who wait for another to lead them
	lastWaitID uint64             // number of the last wait
	active     []ActiveWait       // those who are in one
	lastOp     LastOp             // of Send and Receive
	pollStats  PollStats          // of Test
	snapshot   *waitSnapshot      // under way, or nil
	closed     bool
}

// Waitable is what a goroutine waits for. Ready is called with the lock held.
type Waitable interface{ Ready() bool }

// follower is a goroutine that waits and does not lead.
type follower struct {
	Waitable
	wake chan struct{}
}

var followerPool = sync.Pool{New: func() any { return &follower{wake: make(chan struct{}, 1)} }}

// New makes the engine of a rank. Open makes its fabric, whose host the engine
// is; it is not called if there are no others.
func New(rank, size int, open func(fabric.Host) (fabric.Fabric, error)) (*Engine, error) {
	e := &Engine{rank: rank, size: size, core: protocol.New(rank, size), interrupt: cancelctx.New(context.Canceled), pollStats: PollStats{round: 1}}
	if size > 1 {
		e.mu.Lock() // who connects early has to wait for Attach
		defer e.mu.Unlock()
		var err error
		if e.fab, err = open(e); err != nil {
			return nil, err
		}
		e.core.Attach(e.fab)
	}
	return e, nil
}

// Rank and Size are those of the job.
func (e *Engine) Rank() int { return e.rank }
func (e *Engine) Size() int { return e.size }

// Fabric is what carries the rank's packets, nil if it is alone.
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

// Send begins a send.
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

// Receive begins a receive.
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

// Test reports whether something is ready, and has a look at the network if it
// is not.
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

// pollFabric looks at the network if nobody else does.
func (e *Engine) pollFabric() {
	e.recordActivity()
	if e.fab != nil && e.leader == nil && e.fab.Poll() {
		e.wakeReady()
	}
}

// Wait returns when something is ready, or ctx has ended, whose error it then
// returns. What it waits for may have become ready all the same.
func (e *Engine) Wait(ctx context.Context, w Waitable) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastOp.Calls++
	if !w.Ready() {
		if err := e.waitUntilReady(ctx, w); err != nil {
			return err
		}
	}
	e.wakeReady() // somebody else has to lead now
	return nil
}

// waitUntilReady is Wait for something that is not ready.
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

// endWait is the end of a wait.
func (e *Engine) endWait(id uint64) {
	e.active = slices.DeleteFunc(e.active, func(w ActiveWait) bool { return w.ID == id })
	e.snapshot.removeWait(id)
}

// serveAsLeader serves the network for all until something has happened.
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

// waitAsFollower waits for who leads.
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
		if p == me { // the context's end, not a wake
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

// wakeReady wakes those who have what they wait for and, if nobody leads, one who
// will.
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

// FailAll ends all requests that are not done, with ErrClosed, and all that begin from now
// on. Packets that others need are dealt with until Close.
func (e *Engine) FailAll() { e.Do(func(core *protocol.Core) { core.FailAll(ErrClosed) }) }

// Close ends the engine and its fabric. Whoever waits, or comes to wait for what is not
// done, has ErrClosed.
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
