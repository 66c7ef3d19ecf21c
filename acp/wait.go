package acp

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/cancelctx"
)

// progressEngine says who looks at the network: one of those who wait, for all of them.
type progressEngine struct {
	cond      sync.Cond          // something has happened, or nobody leads
	hasLeader bool               // somebody looks
	blocked   bool               // and is asleep in fabric.Net.Block
	wakeCtx   *cancelctx.Context // which this ends
	timer     *time.Timer        // and this, by kick
	events    uint64             // of the network, of operations, of channels
	notified  uint64             // of these, those that who waits knows of

	activity        uint64        // of those who look or wait
	backgroundLeads bool          // the one who leads is attend
	backgroundDone  chan struct{} // closed when attend has ended
}

func (t *progressEngine) init(mu *sync.Mutex) {
	t.cond.L = mu
	t.wakeCtx = cancelctx.New(context.Canceled)
}

// condition is what a goroutine waits for. ready is called with the lock held.
type condition interface{ isReady() bool }

// unlockAndNotify ends a call: if it has changed anything, those who wait have a look.
func (p *Process) unlockAndNotify() {
	if t := &p.engine; t.notified != t.events {
		t.notified = t.events
		t.cond.Broadcast()
		if t.blocked {
			t.wakeCtx.Cancel()
		}
	} else if t.blocked && p.o.Net == UD { // who sleeps does not hear of operations that were begun since
		t.wakeCtx.Cancel()
	}
	p.mu.Unlock()
}

// noteActivity is called by those who look at the network, or are going to wait.
func (p *Process) noteActivity() {
	t := &p.engine
	t.activity++
	if t.backgroundLeads && t.blocked {
		t.wakeCtx.Cancel()
	}
}

// pollProgress does what there is to do, without waiting, and reports whether there was
// anything.
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

// Progress has operations and channels go on without waiting for anything: for programs that look at memory
// until others have changed it.
func (p *Process) Progress() {
	if p.isNull() {
		return
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	p.noteActivity()
	p.pollProgress()
}

// waitFor returns when something is ready, or ctx has ended, whose error it then returns. The
// lock is held, but not while it waits.
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

// waitAsFollower waits for who leads.
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

// How long who waits looks before it sleeps: first without a pause, then letting other goroutines run.
// Where memory is all that tells, it looks again after naps that grow.
const (
	spinRounds  = 100
	yieldRounds = 200
	minSleep    = 20 * time.Microsecond
	maxSleep    = time.Millisecond
)

// serveAsLeader looks at the network for all until what the caller waits for is ready, or ctx has ended.
func (p *Process) serveAsLeader(ctx context.Context, w condition) {
	t := &p.engine
	t.hasLeader = true
	defer func() {
		t.hasLeader = false
		t.cond.Broadcast()
	}()
	var quiet time.Time // since when nothing has happened, if it is a while
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
		} else if now.Sub(quiet) >= p.o.Patience {
			quiet = now
			p.probeAwaited()
		}
		if p.mustPollMemory() {
			p.blockOnNet(ctx, nap)
			nap = nextSleep(nap)
		} else {
			p.blockOnNet(ctx, p.o.Patience)
			nap = minSleep // somebody may have begun what memory tells of
		}
	}
}

// nextSleep returns the time to sleep after a nap in which nothing has happened.
func nextSleep(nap time.Duration) time.Duration { return min(2*nap, maxSleep) }

// mustPollMemory reports whether something may happen that nothing tells but memory.
func (p *Process) mustPollMemory() bool {
	return p.barrier.waiting || len(p.channels.active) > 0 || len(p.channels.unmatched) > 0
}

// probeAwaited asks those that are waited for whether they are there.
func (p *Process) probeAwaited() {
	if p.barrier.waiting {
		p.probeRank(p.barrier.source)
	}
	p.channels.probePeers(p)
}

// blockOnNet returns when the network has something, something has happened, or after a while.
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

// wakeLeader ends a sleep.
func (p *Process) wakeLeader() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine.wakeCtx.Cancel()
}

// backgroundInterval is how long nobody may look at the network before attend does.
const backgroundInterval = time.Millisecond

// runBackground looks at the network when nobody else has done so for a while (Options.Progress). Who
// comes to wait takes its place.
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

// activityCond is ready when somebody else looks at the network.
type activityCond struct {
	p    *Process
	last uint64
}

func (v activityCond) isReady() bool { return v.p.engine.activity != v.last || v.p.closed }
