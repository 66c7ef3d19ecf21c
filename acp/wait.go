package acp

import (
	"context"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/progress"
)

// unlockAndNotify ends an API call: it unlocks p.mu, and if anything has changed it wakes the waiters whose
// condition is met.
func (p *Process) unlockAndNotify() {
	changed := p.notified != p.changes
	p.notified = p.changes
	if changed {
		p.progress.Notify()
	}
	if p.polling.sleeps() && (changed || p.o.Net == UD) { // over UD, Block does not wait for operations started later
		p.progress.RestartBlock()
	}
	p.mu.Unlock()
}

// pollProgress makes progress on the channels and, unless another goroutine leads, on the network. p.mu must
// be held.
func (p *Process) pollProgress() {
	if !p.progress.Poll() {
		p.progressChannels()
	}
}

// Progress makes progress on operations and channels without blocking, for programs that poll memory.
func (p *Process) Progress() {
	if p.isNull() {
		return
	}
	p.mu.Lock()
	defer p.unlockAndNotify()
	p.pollProgress()
}

// waitFor blocks until w is ready or ctx ends, and returns the cause in that case. p.mu must be held; it is
// released while the goroutine blocks.
func (p *Process) waitFor(ctx context.Context, w progress.Waitable) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if p.progress.Wait(ctx, w) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// source is the transport as the Source of the progress engine.
type source Process

// pollState is the state of the goroutine that leads.
type pollState struct {
	idleRounds int           // polls without an event
	watch      memoryWatch   // words that peers write without a signal
	nap        time.Duration // length of the next sleep, if memory must be polled between sleeps
	quiet      time.Time     // start of the time without events, or zero
	timer      *time.Timer   // ends the sleep
}

// reset starts to poll in a spin loop.
func (s *pollState) reset() { s.idleRounds, s.nap, s.quiet = 0, minSleep, time.Time{} }

// sleeps reports whether the leader sleeps in Net.Block between polls.
func (s *pollState) sleeps() bool { return s.idleRounds >= yieldRounds }

// Prepare implements progress.Source.
func (s *source) Prepare(progress.Waitable) {
	if !s.progress.Leading() { // the goroutine will lead
		s.polling.reset()
	}
}

// Poll implements progress.Source.
func (s *source) Poll() bool {
	p := (*Process)(s)
	before := p.changes
	if !p.closed && p.net.Poll() {
		p.changes++
	}
	p.progressChannels()
	if p.changes == before {
		p.polling.idleRounds++
		return false
	}
	p.polling.reset()
	return true
}

// Number of polls before the leader blocks: first in a spin loop, then yielding to the scheduler. If the
// awaited event is visible in memory only, and the transport does not watch it, the leader polls again after
// sleeps that double from minSleep to maxSleep.
const (
	spinRounds  = 100
	yieldRounds = 200
	minSleep    = 20 * time.Microsecond
	maxSleep    = time.Millisecond
)

// Block implements progress.Source. A transport that fails ends the operations.
func (s *source) Block(ctx context.Context) error {
	p := (*Process)(s)
	if !p.polling.sleeps() {
		if p.polling.idleRounds > spinRounds {
			runtime.Gosched()
		}
		return nil
	}
	if changed, idle := p.startSleep(); idle {
		_ = p.net.Block(ctx, changed)
		p.polling.timer.Stop()
	}
	return nil
}

// startSleep probes the awaited ranks if there was no event for a while, and starts the timer that ends the
// leader's sleep. It returns the condition on memory that ends it, nil if there is none, and false if there
// was an event meanwhile.
func (p *Process) startSleep() (changed func() bool, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.polling
	changed = p.watchMemory()
	if changed != nil && (*source)(p).Poll() { // before the words were watched
		return nil, false
	}
	if now := time.Now(); s.quiet.IsZero() {
		s.quiet = now
	} else if now.Sub(s.quiet) >= p.o.ProbeDelay {
		s.quiet = now
		p.probeAwaited()
	}
	d := p.o.ProbeDelay
	if changed != nil && !p.net.WatchesMemory() {
		d, s.nap = s.nap, nextSleep(s.nap)
	} else {
		s.nap = minSleep // another goroutine may have started an operation that must be polled
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(d, p.wakeLeader)
	} else {
		s.timer.Reset(d)
	}
	return changed, true
}

// nextSleep returns the sleep that follows an unsuccessful one of length nap.
func nextSleep(nap time.Duration) time.Duration { return min(2*nap, maxSleep) }

// probeAwaited probes the ranks that this rank waits for.
func (p *Process) probeAwaited() {
	if p.barrier.waiting {
		p.probeRank(p.barrier.source)
	}
	p.channels.probePeers(p)
}

// wakeLeader ends the leader's sleep.
func (p *Process) wakeLeader() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress.RestartBlock()
}

// backgroundInterval is the time without polls and waits after which the background goroutine becomes the
// leader (Options.Progress). A caller that waits takes over the lead.
const backgroundInterval = time.Millisecond
