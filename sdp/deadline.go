package sdp

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// deadline is that of one direction of a connection, whose lock guards it.
type deadline struct {
	moment *moment     // who waits now waits for this one
	timer  *time.Timer // which ends it, or nil
}

func newDeadline() *deadline { return &deadline{moment: newMoment()} }

// past reports whether the time has come.
func (d *deadline) past() bool { return d.moment.past.Load() }

// set makes t the time; the zero time is never.
func (d *deadline) set(t time.Time) {
	if d.timer != nil && !d.timer.Stop() {
		d.moment.end() // its timer was about to
	}
	d.timer = nil
	wait := time.Until(t)
	if !t.IsZero() && wait <= 0 {
		d.moment.end()
		return
	}
	if d.past() {
		d.moment = newMoment()
	}
	if !t.IsZero() {
		d.timer = time.AfterFunc(wait, d.moment.end)
	}
}

// interrupt ends the moment, so that who waits looks again.
func (d *deadline) interrupt() { d.moment.end() }

// moment is a context that ends once, with os.ErrDeadlineExceeded.
type moment struct {
	past  atomic.Bool
	mu    sync.Mutex
	done  chan struct{}
	after map[*func()]struct{} // to be called at the end
}

var _ context.Context = (*moment)(nil)

func newMoment() *moment { return &moment{done: make(chan struct{})} }

func (m *moment) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.past.Swap(true) {
		return
	}
	close(m.done)
	for f := range m.after {
		go (*f)()
	}
	m.after = nil
}

// Deadline implements context.Context.
func (*moment) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (m *moment) Done() <-chan struct{} { return m.done }

// Err implements context.Context.
func (m *moment) Err() error {
	if m.past.Load() {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// Value implements context.Context.
func (*moment) Value(any) any { return nil }

// AfterFunc is what package context looks for in a foreign context, so that it
// needs no goroutine to watch it.
func (m *moment) AfterFunc(f func()) (stop func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.past.Load() {
		go f()
		return func() bool { return false }
	}
	if m.after == nil {
		m.after = make(map[*func()]struct{})
	}
	key := &f
	m.after[key] = struct{}{}
	return func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		_, waits := m.after[key]
		delete(m.after, key)
		return waits
	}
}
