// Package cancelctx provides a context that is allocated once and canceled
// once. A waiter keeps it and passes it to any number of waits, where
// context.WithCancel would allocate for each.
//
//	c := cancelctx.New(os.ErrDeadlineExceeded)
//	timer := time.AfterFunc(d, c.Cancel)
//	n, err := cq.PollWait(c, wcs) // any number of times
//
// context.AfterFunc on it starts no goroutine before it is canceled.
package cancelctx

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A Context is a context.Context that is canceled by its Cancel method.
type Context struct {
	ended atomic.Bool
	err   error
	mu    sync.Mutex
	done  chan struct{}
	after map[*func()]struct{} // functions to call on Cancel
}

var _ context.Context = (*Context)(nil)

// New returns a context that is not canceled. Err returns err once it is.
func New(err error) *Context { return &Context{err: err, done: make(chan struct{})} }

// Canceled reports whether Cancel was called.
func (m *Context) Canceled() bool { return m.ended.Load() }

// Cancel cancels the context. It is idempotent.
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

// AfterFunc makes Cancel call f in its own goroutine; package context uses it
// to avoid a watching goroutine. The returned function prevents the call and
// reports whether it did.
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
