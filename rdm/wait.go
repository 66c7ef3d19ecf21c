package rdm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/softrnic/softrnic/reliability/nack"
	"github.com/softrnic/softrnic/verbs"
)

// Progress handles what has come, without waiting, and reports whether there was
// anything. A loop that watches Op.Done or memory calls it.
func (e *Endpoint) Progress() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.poll()
}

// poll looks what has come, unless somebody sleeps in the adapter: then he does.
// The lock is held, as in all of this file but the timer's.
func (e *Endpoint) poll() (some bool) {
	if e.leading || e.err != nil {
		return false
	}
	for {
		n, err := e.port.CQ.Poll(e.wcs[:])
		if n > 0 {
			some = true
			e.handleCompletions(n)
		}
		if err != nil {
			e.fail(err)
		}
		if n < len(e.wcs) {
			break
		}
	}
	if some {
		e.dispatchAndFlush()
	}
	return some
}

// handleCompletions handles the first n completions of wcs.
func (e *Endpoint) handleCompletions(n int) {
	e.dispatching = true
	e.port.HandleCompletions(e.wcs[:n])
	e.dispatching = false
}

// dispatchAndFlush heeds what has become of peers, sends what is to be sent, and wakes whom
// it concerns.
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

// dispatchEvents heeds what has become of peers.
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

// timeoutError is the error of a peer that answers nothing any more: ErrSilent, with what the
// system says of packets to it.
func (e *Endpoint) timeoutError(p *Peer) error {
	if why := e.port.LastRefusal(p.number); why != nil {
		return fmt.Errorf("%w: %w", ErrTimeout, why)
	}
	return ErrTimeout
}

// flush sends what the core has to send.
func (e *Endpoint) flush() {
	if e.dispatching || e.err != nil {
		return
	}
	now := e.port.Now()
	e.port.SendPending(now)
	e.armTimer(now)
}

// waitUntil serves the network until done reports true. It returns the context's error
// or why the endpoint is of no further use.
func (e *Endpoint) waitUntil(ctx context.Context, done func() bool) error {
	defer func() {
		if !e.leading {
			e.wakeAll() // somebody else has to sleep in the adapter now
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

// serveAsLeader sleeps in the adapter, without the lock, until something comes, the context
// ends, or somebody has done what may concern the sleeper.
func (e *Endpoint) serveAsLeader(ctx context.Context) {
	kick, wake := e.leaderCtx, e.wakeLeader
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, wake)()
	}
	e.leading = true
	e.mu.Unlock()
	n, err := e.port.CQ.PollWait(kick, e.wcs[:])
	e.mu.Lock()
	e.leading = false
	if kick.Err() != nil && e.err == nil {
		e.leaderCtx, e.wakeLeader = context.WithCancel(context.Background())
	}
	if n > 0 {
		e.handleCompletions(n)
	}
	if e.port.CQ.Len() > 0 {
		e.poll() // nothing is left behind: the service, if it sleeps, would not know
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		e.fail(err)
	}
	e.dispatchAndFlush()
}

// waitAsFollower sleeps, without the lock, until rouse or the end of the context.
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

// wakeAll wakes all that sleep, so that they look whether it was for them.
func (e *Endpoint) wakeAll() {
	if e.leading {
		e.wakeLeader()
	}
	for _, w := range e.waiters {
		w <- struct{}{}
	}
	e.waiters = e.waiters[:0]
}

// armTimer makes the timer ring when something is due.
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

// onTimer is the timer's.
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
	e.armTimer(now) // also if the endpoint has failed just now: then late does nothing
}

// runService is the service goroutine: it carries out what peers ask for while nobody
// else serves the network. It sleeps on its own: what wakes a leader may be long before
// the leader has a processor, and is nothing to it.
func (e *Endpoint) runService(cq verbs.CQ, mode Service) {
	defer close(e.served)
	for {
		e.mu.Lock()
		if e.err != nil {
			e.mu.Unlock()
			return
		}
		some := e.poll()
		led := e.leading // then the leader finds what has come
		armed := error(nil)
		if mode == ServeEvent && !some {
			armed = cq.ReqNotify(true)
		}
		e.mu.Unlock()
		switch {
		case armed != nil:
			return // the queue has overrun; who polls is told
		case mode == ServePoll:
			runtime.Gosched()
		case !some && (led || cq.Len() == 0):
			_ = cq.Wait(e.serviceCtx)
		}
	}
}
