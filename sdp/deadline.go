package sdp

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// deadline is that of one direction of a connection, and the context of who
// waits there: it ends when the time has come, or by interrupt. A later time
// makes another one of it.
type deadline struct {
	past atomic.Bool // the context has ended

	mu    sync.Mutex
	timer *time.Timer
	stale uint64 // number of the timer that counts
	done  chan struct{}
	after map[*func()]struct{} // to be called at the end
}

var _ context.Context = (*deadline)(nil)

func newDeadline() *deadline { return &deadline{done: make(chan struct{})} }

// set makes t the time; the zero time is never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.stale++
	wait := time.Until(t)
	if !t.IsZero() && wait <= 0 {
		d.end()
		return
	}
	if d.past.Load() {
		d.done = make(chan struct{})
		d.past.Store(false)
	}
	if !t.IsZero() {
		number := d.stale
		d.timer = time.AfterFunc(wait, func() { d.expire(number) })
	}
}

// expire is a timer's.
func (d *deadline) expire(number uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if number == d.stale {
		d.end()
	}
}

// interrupt ends the context.
func (d *deadline) interrupt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stale++
	d.end()
}

// end closes done, once. The lock is held.
func (d *deadline) end() {
	if d.past.Swap(true) {
		return
	}
	close(d.done)
	for f := range d.after {
		go (*f)()
	}
	d.after = nil
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// Err implements context.Context.
func (d *deadline) Err() error {
	if d.past.Load() {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// Value implements context.Context.
func (d *deadline) Value(any) any { return nil }

// AfterFunc is what package context looks for in a foreign context, so that it
// needs no goroutine to watch it.
func (d *deadline) AfterFunc(f func()) (stop func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.past.Load() {
		go f()
		return func() bool { return false }
	}
	if d.after == nil {
		d.after = make(map[*func()]struct{})
	}
	key := &f
	d.after[key] = struct{}{}
	return func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		_, waits := d.after[key]
		delete(d.after, key)
		return waits
	}
}
