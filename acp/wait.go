package acp

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/cancelctx"
)

// turns says who looks at the network: one of those who wait, for all of them.
type turns struct {
	change sync.Cond          // something has happened, or nobody leads
	led    bool               // somebody looks
	sleeps bool               // and is asleep in fabric.Net.Block
	kick   *cancelctx.Context // which this ends
	timer  *time.Timer        // and this, by kick
	events uint64             // of the network, of operations, of channels
	told   uint64             // of these, those that who waits knows of

	visits    uint64        // of those who look or wait
	attends   bool          // the one who leads is attend
	attending chan struct{} // closed when attend has ended
}

func (t *turns) init(mu *sync.Mutex) {
	t.change.L = mu
	t.kick = cancelctx.New(context.Canceled)
}

// waitable is what a goroutine waits for. ready is called with the lock held.
type waitable interface{ ready() bool }

// unlock ends a call: if it has changed anything, those who wait have a look.
func (p *Process) unlock() {
	if t := &p.turns; t.told != t.events {
		t.told = t.events
		t.change.Broadcast()
		if t.sleeps {
			t.kick.Cancel()
		}
	} else if t.sleeps && p.o.Net == UD { // who sleeps does not hear of operations that were begun since
		t.kick.Cancel()
	}
	p.mu.Unlock()
}

// visit is called by those who look at the network, or are going to wait.
func (p *Process) visit() {
	t := &p.turns
	t.visits++
	if t.attends && t.sleeps {
		t.kick.Cancel()
	}
}

// progress does what there is to do, without waiting, and reports whether there was
// anything.
func (p *Process) progress() bool {
	t := &p.turns
	before := t.events
	if p.closed {
		return false
	}
	if len(p.channels.owing) > 0 {
		p.channels.pay()
		p.flush()
	}
	if !t.sleeps && p.net.Poll() {
		t.events++
	}
	p.channels.step(p)
	p.flush()
	return t.events != before
}

// Progress has operations and channels go on without waiting for anything: for programs that look at memory
// until others have changed it.
func (p *Process) Progress() {
	if p.isNull() {
		return
	}
	p.mu.Lock()
	defer p.unlock()
	p.visit()
	p.progress()
}

// wait returns when something is ready, or ctx has ended, whose error it then returns. The
// lock is held, but not while it waits.
func (p *Process) wait(ctx context.Context, w waitable) error {
	if ctx == nil {
		ctx = context.Background()
	}
	t := &p.turns
	for !w.ready() {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		p.visit()
		if t.led {
			p.park(ctx)
		} else {
			p.lead(ctx, w)
		}
	}
	return nil
}

// park waits for who leads.
func (p *Process) park(ctx context.Context) {
	t := &p.turns
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.change.Broadcast()
		})
		defer stop()
	}
	t.change.Wait()
}

// How long who waits looks before it sleeps: first without a pause, then letting other goroutines run.
// Where memory is all that tells, it looks again after naps that grow.
const (
	spinRounds  = 100
	yieldRounds = 200
	napMin      = 20 * time.Microsecond
	napMax      = time.Millisecond
)

// lead looks at the network for all until what the caller waits for is ready, or ctx has ended.
func (p *Process) lead(ctx context.Context, w waitable) {
	t := &p.turns
	t.led = true
	defer func() {
		t.led = false
		t.change.Broadcast()
	}()
	var quiet time.Time // since when nothing has happened, if it is a while
	nap := napMin
	for idle := 0; !w.ready(); {
		if p.progress() {
			t.told = t.events
			t.change.Broadcast()
			idle, nap, quiet = 0, napMin, time.Time{}
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
			p.suspect()
		}
		if p.watches() {
			p.sleep(ctx, nap)
			nap = nextNap(nap)
		} else {
			p.sleep(ctx, p.o.Patience)
			nap = napMin // somebody may have begun what memory tells of
		}
	}
}

// nextNap returns the time to sleep after a nap in which nothing has happened.
func nextNap(nap time.Duration) time.Duration { return min(2*nap, napMax) }

// watches reports whether something may happen that nothing tells but memory.
func (p *Process) watches() bool {
	return p.barrier.round || len(p.channels.active) > 0 || len(p.channels.seekers) > 0
}

// suspect asks those that are waited for whether they are there.
func (p *Process) suspect() {
	if p.barrier.round {
		p.ask(p.barrier.from)
	}
	p.channels.suspect(p)
}

// sleep returns when the network has something, something has happened, or after a while.
func (p *Process) sleep(ctx context.Context, d time.Duration) {
	t := &p.turns
	kick := t.kick
	if t.timer == nil {
		t.timer = time.AfterFunc(d, p.awake)
	} else {
		t.timer.Reset(d)
	}
	t.sleeps = true
	p.mu.Unlock()
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, kick.Cancel)
		defer stop()
	}
	_ = p.net.Block(kick)
	p.mu.Lock()
	t.timer.Stop()
	t.sleeps = false
	if t.kick.Canceled() {
		t.kick = cancelctx.New(context.Canceled)
	}
}

// awake ends a sleep.
func (p *Process) awake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns.kick.Cancel()
}

// attendTime is how long nobody may look at the network before attend does.
const attendTime = time.Millisecond

// attend looks at the network when nobody else has done so for a while (Options.Progress). Who
// comes to wait takes its place.
func (p *Process) attend() {
	t := &p.turns
	defer close(t.attending)
	tick := time.NewTicker(attendTime)
	defer tick.Stop()
	for last := uint64(0); ; <-tick.C {
		p.mu.Lock()
		for !p.closed && !t.led && t.visits == last {
			t.attends = true
			p.lead(context.Background(), visited{p, last})
			t.attends = false
		}
		last = t.visits
		closed := p.closed
		p.mu.Unlock()
		if closed {
			return
		}
	}
}

// visited is ready when somebody else looks at the network.
type visited struct {
	p    *Process
	last uint64
}

func (v visited) ready() bool { return v.p.turns.visits != v.last || v.p.closed }
