package acp

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/cancelctx"
)

// progressEngine is the leader/follower state of the waiting goroutines: one of them, the leader, polls the
// network for all.
type progressEngine struct {
	cond      sync.Cond          // an event, or no leader
	hasLeader bool               // a goroutine polls
	blocked   bool               // the leader sleeps in fabric.Net.Block
	wakeCtx   *cancelctx.Context // canceled to wake the leader
	timer     *time.Timer        // wakes the leader by wakeCtx
	events    uint64             // counts events of the network, operations and channels
	notified  uint64             // the value of events at the last broadcast

	activity        uint64        // counts the calls that poll or wait
	backgroundLeads bool          // the leader is runBackground
	backgroundDone  chan struct{} // closed when runBackground has returned
}

func (e *progressEngine) init(mu *sync.Mutex) {
	e.cond.L = mu
	e.wakeCtx = cancelctx.New(context.Canceled)
}

// condition is the condition that a goroutine waits for. isReady is called with Process.mu held.
type condition interface{ isReady() bool }

// unlockAndNotify ends an API call: it unlocks p.mu, and if there were events it wakes the waiters.
func (p *Process) unlockAndNotify() {
	if t := &p.engine; t.notified != t.events {
		t.notified = t.events
		t.cond.Broadcast()
		if t.blocked {
			t.wakeCtx.Cancel()
		}
	} else if t.blocked && p.o.Net == UD { // a sleeping leader does not wait for operations started later
		t.wakeCtx.Cancel()
	}
	p.mu.Unlock()
}

// noteActivity tells the background goroutine that a caller is about to poll or wait. p.mu must be held.
func (p *Process) noteActivity() {
	t := &p.engine
	t.activity++
	if t.backgroundLeads && t.blocked {
		t.wakeCtx.Cancel()
	}
}

// pollProgress returns pending credits, polls the transport once and makes progress on the channels. It
// reports whether there were events. p.mu must be held.
func (p *Process) pollProgress() bool {
	t := &p.engine
	before := t.events
	if p.closed {
		return false
	}
	if len(p.channels.creditsDue) > 0 {
		p.channels.flushCredits()
		p.flushPosted()
	}
	if !t.blocked && p.net.Poll() {
		t.events++
	}
	p.channels.progressActive(p)
	p.flushPosted()
	return t.events != before
}

// Progress makes progress on operations and channels without blocking, for programs that poll memory.
func (p *Process) Progress() {
	if p.isNull() {
		return
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	p.noteActivity()
	p.pollProgress()
}

// waitFor blocks until w is ready or ctx ends, and returns the cause in that case. p.mu must be held; it is
// released while the goroutine blocks.
func (p *Process) waitFor(ctx context.Context, w condition) error {
	if ctx == nil {
		ctx = context.Background()
	}
	t := &p.engine
	for !w.isReady() {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		p.noteActivity()
		if t.hasLeader {
			p.waitAsFollower(ctx)
		} else {
			p.serveAsLeader(ctx, w)
		}
	}
	return nil
}

// waitAsFollower blocks until the next broadcast or the end of ctx. p.mu must be held.
func (p *Process) waitAsFollower(ctx context.Context) {
	t := &p.engine
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.cond.Broadcast()
		})
		defer stop()
	}
	t.cond.Wait()
}

// Number of polls before the leader blocks: first in a spin loop, then yielding to the scheduler. If the
// awaited event is visible in memory only, the leader polls again after sleeps that double from minSleep to
// maxSleep.
const (
	spinRounds  = 100
	yieldRounds = 200
	minSleep    = 20 * time.Microsecond
	maxSleep    = time.Millisecond
)

// serveAsLeader polls the network on behalf of all waiters until w is ready or ctx ends. p.mu must be held.
func (p *Process) serveAsLeader(ctx context.Context, w condition) {
	t := &p.engine
	t.hasLeader = true
	defer func() {
		t.hasLeader = false
		t.cond.Broadcast()
	}()
	var quiet time.Time // start of the time without events, or zero
	nap := minSleep
	for idle := 0; !w.isReady(); {
		if p.pollProgress() {
			t.notified = t.events
			t.cond.Broadcast()
			idle, nap, quiet = 0, minSleep, time.Time{}
			continue
		}
		if idle++; idle < yieldRounds {
			p.mu.Unlock()
			if idle > spinRounds {
				runtime.Gosched()
			}
			p.mu.Lock()
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if now := time.Now(); quiet.IsZero() {
			quiet = now
		} else if now.Sub(quiet) >= p.o.ProbeDelay {
			quiet = now
			p.probeAwaited()
		}
		if p.mustPollMemory() {
			p.blockOnNet(ctx, nap)
			nap = nextSleep(nap)
		} else {
			p.blockOnNet(ctx, p.o.ProbeDelay)
			nap = minSleep // another goroutine may have started an operation that must be polled
		}
	}
}

// nextSleep returns the sleep that follows an unsuccessful one of length nap.
func nextSleep(nap time.Duration) time.Duration { return min(2*nap, maxSleep) }

// mustPollMemory reports whether an awaited event may be visible in memory only.
func (p *Process) mustPollMemory() bool {
	return p.barrier.waiting || len(p.channels.active) > 0 || len(p.channels.unmatched) > 0
}

// probeAwaited probes the ranks that this rank waits for.
func (p *Process) probeAwaited() {
	if p.barrier.waiting {
		p.probeRank(p.barrier.source)
	}
	p.channels.probePeers(p)
}

// blockOnNet blocks until the network has an event, the leader is woken, ctx ends or d has passed. p.mu must
// be held; it is released meanwhile.
func (p *Process) blockOnNet(ctx context.Context, d time.Duration) {
	t := &p.engine
	kick := t.wakeCtx
	if t.timer == nil {
		t.timer = time.AfterFunc(d, p.wakeLeader)
	} else {
		t.timer.Reset(d)
	}
	t.blocked = true
	p.mu.Unlock()
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, kick.Cancel)
		defer stop()
	}
	_ = p.net.Block(kick)
	p.mu.Lock()
	t.timer.Stop()
	t.blocked = false
	if t.wakeCtx.Canceled() {
		t.wakeCtx = cancelctx.New(context.Canceled)
	}
}

// wakeLeader ends the leader's sleep.
func (p *Process) wakeLeader() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine.wakeCtx.Cancel()
}

// backgroundInterval is the time without polls after which runBackground becomes the leader.
const backgroundInterval = time.Millisecond

// runBackground polls the network while no caller does (Options.Progress). A caller that waits takes over the
// lead.
func (p *Process) runBackground() {
	t := &p.engine
	defer close(t.backgroundDone)
	tick := time.NewTicker(backgroundInterval)
	defer tick.Stop()
	for last := uint64(0); ; <-tick.C {
		p.mu.Lock()
		for !p.closed && !t.hasLeader && t.activity == last {
			t.backgroundLeads = true
			p.serveAsLeader(context.Background(), activityCond{p, last})
			t.backgroundLeads = false
		}
		last = t.activity
		closed := p.closed
		p.mu.Unlock()
		if closed {
			return
		}
	}
}

// activityCond is ready when another goroutine polls or waits.
type activityCond struct {
	p    *Process
	last uint64
}

func (c activityCond) isReady() bool { return c.p.engine.activity != c.last || c.p.closed }
