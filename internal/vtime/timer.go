package vtime

import (
	"context"
	"time"
)

// A Timer is a time.Timer of AfterFunc.
type Timer struct {
	real *time.Timer
	f    func()
	stop func() bool // of a timer on a simulated host that is set
}

// AfterFunc is time.AfterFunc.
func AfterFunc(d time.Duration, f func()) *Timer {
	h := current.Load()
	if h == nil {
		return &Timer{real: time.AfterFunc(d, f)}
	}
	t := &Timer{f: f}
	t.stop = (*h).CallAfter(int64(d), f)
	return t
}

// Stop is the method of time.Timer.
func (t *Timer) Stop() bool {
	if t.real != nil {
		return t.real.Stop()
	}
	return t.stop()
}

// Reset is the method of time.Timer.
func (t *Timer) Reset(d time.Duration) bool {
	if t.real != nil {
		return t.real.Reset(d)
	}
	active := t.stop()
	t.stop = (*current.Load()).CallAfter(int64(d), t.f)
	return active
}

// A Ticker is a time.Ticker.
type Ticker struct {
	C     <-chan time.Time
	real  *time.Ticker
	timer *Timer
}

// NewTicker is time.NewTicker.
func NewTicker(d time.Duration) *Ticker {
	if !OnSimulatedHost() {
		t := time.NewTicker(d)
		return &Ticker{C: t.C, real: t}
	}
	c := make(chan time.Time, 1)
	t := &Ticker{C: c}
	t.timer = AfterFunc(d, func() {
		select {
		case c <- Now():
		default:
		}
		t.timer.Reset(d)
	})
	return t
}

// Stop is the method of time.Ticker.
func (t *Ticker) Stop() {
	if t.real != nil {
		t.real.Stop()
	} else {
		t.timer.Stop()
	}
}

// WithTimeout is context.WithTimeout.
func WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return WithTimeoutCause(parent, d, context.DeadlineExceeded)
}

// WithTimeoutCause is context.WithTimeoutCause.
func WithTimeoutCause(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if !OnSimulatedHost() {
		return context.WithTimeoutCause(parent, d, cause)
	}
	inner, cancel := context.WithCancelCause(parent)
	c := &deadlineContext{Context: inner}
	t := AfterFunc(d, func() {
		c.expired = inner.Err() == nil
		cancel(cause)
	})
	return c, func() {
		t.Stop()
		cancel(nil)
	}
}

// A deadlineContext ends at a virtual time.
type deadlineContext struct {
	context.Context
	expired bool
}

// Err implements context.Context.
func (c *deadlineContext) Err() error {
	if c.expired {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}
