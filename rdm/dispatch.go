package rdm

import (
	"fmt"
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/nack"
	"github.com/softrnic/softrnic/verbs"
)

// The functions of this file except onTimer and runService are called with e.mu held.

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
		e.progress.Notify()
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

// noLeader is the condition that no goroutine leads.
type noLeader Endpoint

// Ready implements progress.Waitable.
func (e *noLeader) Ready() bool { return !e.progress.Leading() }

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
	e.progress.Poll()
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
		handled := e.progress.Poll()
		hasLeader := e.progress.Leading() // the leader handles the completions
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
