package rdm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/verbs"
)

// Progress handles pending completions without blocking, and reports whether
// there were any. A loop that polls Op.Done or memory must call it.
func (e *Endpoint) Progress() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.poll()
}

// poll handles pending completions, unless a leader blocks in the adapter and
// handles them. It reports whether there were any. e.mu must be held, as in all
// functions of this file except Progress, onTimer and runService.
func (e *Endpoint) poll() (handled bool) {
	if e.leading || e.err != nil {
		return false
	}
	for {
		n, err := e.port.CQ.Poll(e.wcs[:])
		if n > 0 {
			handled = true
			e.handleCompletions(n)
		}
		if err != nil {
			e.fail(err)
		}
		if n < len(e.wcs) {
			break
		}
	}
	if handled {
		e.dispatchAndFlush()
	}
	return handled
}

// handleCompletions handles the first n completions of wcs.
func (e *Endpoint) handleCompletions(n int) {
	e.dispatching = true
	e.port.HandleCompletions(e.wcs[:n])
	e.dispatching = false
}

// dispatchAndFlush handles pending events of peers, sends queued packets and
// wakes the waiters if any state changed.
func (e *Endpoint) dispatchAndFlush() {
	e.dispatching = true
	e.port.HandleRefusals()
	e.dispatchEvents()
	e.dispatching = false
	e.flush()
	if e.changed {
		e.changed = false
		e.wakeAll()
	}
}

// dispatchEvents handles the events queued by the NACK core.
func (e *Endpoint) dispatchEvents() {
	for ev, ok := e.core.NextEvent(); ok; ev, ok = e.core.NextEvent() {
		p := e.peers[ev.Peer]
		if p == nil {
			continue
		}
		switch ev.Kind {
		case nack.Writable:
			p.full = false
			e.changed = true
			e.flushPending(p)
		case nack.Restarted:
			e.failPeer(p, ErrRestarted)
		case nack.TimedOut:
			e.failPeer(p, e.timeoutError(p))
		case nack.ProtocolError:
			e.failPeer(p, ErrProtocol)
		}
	}
}

// timeoutError returns the error of a peer that does not respond: ErrTimeout,
// with the system's refusal to send to it if there was one.
func (e *Endpoint) timeoutError(p *Peer) error {
	if cause := e.port.LastRefusal(p.number); cause != nil {
		return fmt.Errorf("%w: %w", ErrTimeout, cause)
	}
	return ErrTimeout
}

// flush sends the core's packets and arms the timer.
func (e *Endpoint) flush() {
	if e.dispatching || e.err != nil {
		return
	}
	now := e.port.Now()
	e.port.SendPending(now)
	e.armTimer(now)
}

// waitUntil makes progress until done reports true. It returns the error of ctx
// or the failure of the endpoint.
func (e *Endpoint) waitUntil(ctx context.Context, done func() bool) error {
	defer func() {
		if !e.leading {
			e.wakeAll() // a follower becomes the leader
		}
	}()
	for first := true; ; first = false {
		if done() {
			return nil
		}
		if e.err != nil {
			return e.err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case e.leading:
			e.waitAsFollower(ctx)
		case first && e.poll():
		default:
			e.serveAsLeader(ctx)
		}
	}
}

// serveAsLeader blocks in the adapter, without the lock, until a completion
// arrives, ctx ends, or wakeAll is called.
func (e *Endpoint) serveAsLeader(ctx context.Context) {
	leaderCtx, wake := e.leaderCtx, e.wakeLeader
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, wake)()
	}
	e.leading = true
	e.mu.Unlock()
	n, err := e.port.CQ.PollWait(leaderCtx, e.wcs[:])
	e.mu.Lock()
	e.leading = false
	if leaderCtx.Err() != nil && e.err == nil {
		e.leaderCtx, e.wakeLeader = context.WithCancel(context.Background())
	}
	if n > 0 {
		e.handleCompletions(n)
	}
	if e.port.CQ.Len() > 0 {
		e.poll() // handle the rest: a sleeping service would not be notified
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		e.fail(err)
	}
	e.dispatchAndFlush()
}

// waitAsFollower blocks, without the lock, until wakeAll or the end of ctx.
func (e *Endpoint) waitAsFollower(ctx context.Context) {
	w := make(chan struct{}, 1)
	e.waiters = append(e.waiters, w)
	e.mu.Unlock()
	select {
	case <-w:
	case <-ctx.Done():
	}
	e.mu.Lock()
	if i := slices.Index(e.waiters, w); i >= 0 {
		e.waiters = slices.Delete(e.waiters, i, i+1)
	}
}

// wakeAll wakes the leader and all followers, which check their conditions
// again.
func (e *Endpoint) wakeAll() {
	if e.leading {
		e.wakeLeader()
	}
	for _, w := range e.waiters {
		w <- struct{}{}
	}
	e.waiters = e.waiters[:0]
}

// armTimer sets the timer to the next deadline.
func (e *Endpoint) armTimer(now nack.Time) {
	at := now + nack.Time(pollInterval)
	if d := e.core.Deadline(); d != 0 {
		at = min(at, d)
	}
	for _, p := range e.connecting {
		at = min(at, p.nextHelloAt)
	}
	if e.timerAt != 0 && e.timerAt <= at {
		return
	}
	e.timerAt = at
	e.timer.Reset(time.Duration(max(0, at-now)))
}

// onTimer handles an expired timer.
func (e *Endpoint) onTimer() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return
	}
	e.timerAt = 0
	e.poll()
	now := e.port.Now()
	e.core.Advance(now)
	e.retryHellos(now)
	e.dispatchAndFlush()
	e.armTimer(now) // also after a failure; onTimer then does nothing
}

// runService is the service goroutine. It executes emulated operations of peers
// while no other goroutine makes progress. It waits on the CQ independently of
// the leader, because events that wake a leader need not wake it.
func (e *Endpoint) runService(cq verbs.CQ, mode Service) {
	defer close(e.served)
	for {
		e.mu.Lock()
		if e.err != nil {
			e.mu.Unlock()
			return
		}
		handled := e.poll()
		hasLeader := e.leading // the leader handles the completions
		armErr := error(nil)
		if mode == ServeEvent && !handled {
			armErr = cq.ReqNotify(true)
		}
		e.mu.Unlock()
		switch {
		case armErr != nil:
			return // the CQ has overrun; pollers get the error
		case mode == ServePoll:
			runtime.Gosched()
		case !handled && (hasLeader || cq.Len() == 0):
			_ = cq.Wait(e.serviceCtx)
		}
	}
}
