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
			e.look(n)
		}
		if err != nil {
			e.fail(err)
		}
		if n < len(e.wcs) {
			break
		}
	}
	if some {
		e.settle()
	}
	return some
}

// look handles the first n completions of wcs.
func (e *Endpoint) look(n int) {
	e.inside = true
	e.port.Look(e.wcs[:n])
	e.inside = false
}

// settle heeds what has become of peers, sends what is to be sent, and wakes whom
// it concerns.
func (e *Endpoint) settle() {
	e.inside = true
	e.port.HandleRefusals()
	e.heed()
	e.inside = false
	e.flush()
	if e.changed {
		e.changed = false
		e.rouse()
	}
}

// heed heeds what has become of peers.
func (e *Endpoint) heed() {
	for ev, ok := e.core.Next(); ok; ev, ok = e.core.Next() {
		p := e.peers[ev.Peer]
		if p == nil {
			continue
		}
		switch ev.Kind {
		case nack.Writable:
			p.full = false
			e.changed = true
			e.pump(p)
		case nack.Restarted:
			e.lose(p, ErrRestarted)
		case nack.Lost:
			e.lose(p, e.silent(p))
		case nack.Broken:
			e.lose(p, ErrBreach)
		}
	}
}

// silent is the error of a peer that answers nothing any more: ErrSilent, with what the
// system says of packets to it.
func (e *Endpoint) silent(p *Peer) error {
	if why := e.port.Refusal(p.number); why != nil {
		return fmt.Errorf("%w: %w", ErrSilent, why)
	}
	return ErrSilent
}

// flush sends what the core has to send.
func (e *Endpoint) flush() {
	if e.inside || e.err != nil {
		return
	}
	now := e.port.Now()
	e.port.Drain(now)
	e.arm(now)
}

// wait serves the network until done reports true. It returns the context's error
// or why the endpoint is of no further use.
func (e *Endpoint) wait(ctx context.Context, done func() bool) error {
	defer func() {
		if !e.leading {
			e.rouse() // somebody else has to sleep in the adapter now
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
			e.park(ctx)
		case first && e.poll():
		default:
			e.lead(ctx)
		}
	}
}

// lead sleeps in the adapter, without the lock, until something comes, the context
// ends, or somebody has done what may concern the sleeper.
func (e *Endpoint) lead(ctx context.Context) {
	kick, wake := e.kick, e.wake
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, wake)()
	}
	e.leading = true
	e.mu.Unlock()
	n, err := e.port.CQ.PollWait(kick, e.wcs[:])
	e.mu.Lock()
	e.leading = false
	if kick.Err() != nil && e.err == nil {
		e.kick, e.wake = context.WithCancel(context.Background())
	}
	if n > 0 {
		e.look(n)
	}
	if e.port.CQ.Len() > 0 {
		e.poll() // nothing is left behind: the service, if it sleeps, would not know
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		e.fail(err)
	}
	e.settle()
}

// park sleeps, without the lock, until rouse or the end of the context.
func (e *Endpoint) park(ctx context.Context) {
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

// rouse wakes all that sleep, so that they look whether it was for them.
func (e *Endpoint) rouse() {
	if e.leading {
		e.wake()
	}
	for _, w := range e.waiters {
		w <- struct{}{}
	}
	e.waiters = e.waiters[:0]
}

// arm makes the timer ring when something is due.
func (e *Endpoint) arm(now nack.Time) {
	at := now + nack.Time(pulse)
	if d := e.core.Deadline(); d != 0 {
		at = min(at, d)
	}
	for _, p := range e.greeted {
		at = min(at, p.greetAt)
	}
	if e.armed != 0 && e.armed <= at {
		return
	}
	e.armed = at
	e.timer.Reset(time.Duration(max(0, at-now)))
}

// late is the timer's.
func (e *Endpoint) late() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return
	}
	e.armed = 0
	e.poll()
	now := e.port.Now()
	e.core.Advance(now)
	e.greetAgain(now)
	e.settle()
	e.arm(now) // also if the endpoint has failed just now: then late does nothing
}

// serve is the service goroutine: it carries out what peers ask for while nobody
// else serves the network. It sleeps on its own: what wakes a leader may be long before
// the leader has a processor, and is nothing to it.
func (e *Endpoint) serve(cq verbs.CQ, mode Service) {
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
			_ = cq.Wait(e.over)
		}
	}
}
