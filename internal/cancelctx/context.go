package cancelctx

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Context is a context that ends once.
type Context struct {
	ended atomic.Bool
	err   error
	mu    sync.Mutex
	done  chan struct{}
	after map[*func()]struct{} // to be called at the end
}

var _ context.Context = (*Context)(nil)

// New returns a moment that has not come yet; why is its error when it has.
func New(why error) *Context { return &Context{err: why, done: make(chan struct{})} }

// Canceled reports whether the moment has come.
func (m *Context) Canceled() bool { return m.ended.Load() }

// Cancel makes it come. Ending twice is safe.
func (m *Context) Cancel() {
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
func (*Context) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (m *Context) Done() <-chan struct{} { return m.done }

// Err implements context.Context.
func (m *Context) Err() error {
	if m.Canceled() {
		return m.err
	}
	return nil
}

// Value implements context.Context.
func (*Context) Value(any) any { return nil }

// AfterFunc is what package context looks for in a foreign context, so that it
// needs no goroutine to watch it.
func (m *Context) AfterFunc(f func()) (stop func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Canceled() {
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
