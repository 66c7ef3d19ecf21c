package moment

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Moment is a context that ends once.
type Moment struct {
	ended atomic.Bool
	why   error
	mu    sync.Mutex
	done  chan struct{}
	after map[*func()]struct{} // to be called at the end
}

var _ context.Context = (*Moment)(nil)

// New returns a moment that has not come yet; why is its error when it has.
func New(why error) *Moment { return &Moment{why: why, done: make(chan struct{})} }

// Past reports whether the moment has come.
func (m *Moment) Past() bool { return m.ended.Load() }

// End makes it come. Ending twice is safe.
func (m *Moment) End() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended.Swap(true) {
		return
	}
	close(m.done)
	for f := range m.after {
		go (*f)()
	}
	m.after = nil
}

// Deadline implements context.Context.
func (*Moment) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (m *Moment) Done() <-chan struct{} { return m.done }

// Err implements context.Context.
func (m *Moment) Err() error {
	if m.Past() {
		return m.why
	}
	return nil
}

// Value implements context.Context.
func (*Moment) Value(any) any { return nil }

// AfterFunc is what package context looks for in a foreign context, so that it
// needs no goroutine to watch it.
func (m *Moment) AfterFunc(f func()) (stop func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Past() {
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
