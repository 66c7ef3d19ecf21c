package cm

import (
	"context"

	"github.com/softrnic/softrnic/cm/internal/protocol"
)

// Null handles (nil or the zero value of their type) behave as handles of a closed manager, so
// that a program that continues after an error gets ErrClosed instead of a panic.

// closedManager is the manager of null handles.
var closedManager = func() *Manager {
	m := &Manager{closed: true, machine: protocol.New(protocol.Config{Rand: func() uint32 { return 1 }}), wake: func() {}}
	m.options.Rand = func() uint32 { return 1 }
	m.closeOnce.Do(func() {})
	return m
}()

var (
	closedListener = &listener{m: closedManager, done: closedChannel, closed: true}
	closedRequest  = &incomingRequest{l: closedListener, resolved: true}
	closedChannel  = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
)

// orClosed returns m, or closedManager if m is a null handle.
func (m *Manager) orClosed() *Manager {
	if m == nil || m.machine == nil {
		return closedManager
	}
	return m
}

// orEnded returns c, or an ended connection if c is a null handle.
func (c *Conn) orEnded() *Conn {
	if c != nil && c.m != nil {
		return c
	}
	c = &Conn{m: closedManager, done: closedChannel, released: closedChannel}
	c.endOnce.Do(func() {})
	c.releaseOnce.Do(func() {})
	c.err.Store(&Error{Op: "use connection", Err: ErrClosed})
	return c
}

func (l *Listener) orClosed() *listener {
	if l == nil || l.l == nil {
		return closedListener
	}
	return l.l
}

func (l *UDListener) orClosed() *listener { return (*Listener)(l).orClosed() }

func (r *Request) orClosed() *incomingRequest {
	if r == nil || r.in == nil {
		return closedRequest
	}
	return r.in
}

func (r *UDRequest) orClosed() *incomingRequest {
	if r == nil || r.in == nil {
		return closedRequest
	}
	return r.in
}

func (m *Manager) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// orBackground returns ctx, or context.Background() if ctx is nil.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
