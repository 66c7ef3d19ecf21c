package cm

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// Managers of iWARP (stream.go) and of the kernel (kernel.go) delegate the set-up of connections: there are
// no messages of package protocol.

// newDelegatedManager creates a manager that delegates. It needs no goroutine.
func newDelegatedManager(dev verbs.Device, o Options) (*Manager, error) {
	port, err := dev.QueryPort(1)
	if err != nil {
		return nil, &Error{Op: "open manager", Err: err}
	}
	gid, err := dev.QueryGID(1, 0)
	if err != nil {
		return nil, &Error{Op: "open manager", Err: err}
	}
	m := &Manager{
		dev: dev, options: o, port: port, limits: dev.QueryDevice(), openedAt: vtime.Now(), done: make(chan struct{}),
		addr: netip.AddrPortFrom(gid.GID.Addr(), port.UDPPort), machine: protocol.New(protocol.Config{Rand: o.Rand}),
		handlers: make(map[uint32]eventHandler), listeners: make(map[mad.ServiceID]*listener), awaitingRTU: make(map[verbs.QP]uint32),
		wake: func() {}, removeCounters: func() {},
	}
	close(m.done)
	return m, nil
}

// closeListeners closes all listeners.
func (m *Manager) closeListeners() {
	m.mu.Lock()
	var listeners []*listener
	for _, l := range m.listeners {
		listeners = append(listeners, l)
	}
	m.mu.Unlock()
	for _, l := range listeners {
		_ = l.close()
	}
}

// newDelegatedListener returns a listener without its port.
func newDelegatedListener(m *Manager) *listener {
	return &listener{m: m, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// startDelegated adds l, for which the transport has returned inner or err, to the manager.
func (l *listener) startDelegated(inner adapter.StreamListener, err error, port uint16, space PortSpace) (*listener, error) {
	m := l.m
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: %w", ErrInUse, err)
		}
		return nil, m.listenError(port, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		inner.Close()
		return nil, m.listenError(port, ErrClosed)
	}
	l.delegated, l.addr = inner, inner.Addr()
	l.service = mad.ServiceIDOf(space, l.addr.Port())
	m.listeners[l.service] = l
	return l, nil
}

// closeDelegated closes the listener and rejects all requests that Accept has not returned.
func (l *listener) closeDelegated() error {
	l.m.mu.Lock()
	if l.closed {
		l.m.mu.Unlock()
		return nil
	}
	delete(l.m.listeners, l.service)
	var queued []*incomingRequest
	for e := l.queue.Front(); e != nil; e = e.Next() {
		in := e.Value.(*incomingRequest)
		delete(l.m.handlers, in.id)
		queued = append(queued, in)
	}
	l.markClosed()
	l.m.mu.Unlock()
	for _, in := range queued {
		_ = in.rejecter().Reject(nil)
	}
	return l.delegated.Close()
}

// A rejecter is a request that the transport rejects.
type rejecter interface{ Reject(private []byte) error }

// rejecter returns the request of iWARP or of the kernel, or nil.
func (in *incomingRequest) rejecter() rejecter {
	switch {
	case in.stream != nil:
		return in.stream
	case in.kernel != nil:
		return in.kernel
	}
	return nil
}

// rejectDelegated rejects a request of iWARP or of the kernel.
func (in *incomingRequest) rejectDelegated(private []byte) error {
	limit := mad.REJPrivateLen
	if in.stream != nil {
		limit = maxStreamPrivateData
	}
	if err := checkPrivateData(private, limit); err != nil {
		return err
	}
	m := in.l.m
	m.mu.Lock()
	err := in.claim()
	if err == nil && in.stream != nil {
		m.stream.rejected++
	}
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return in.rejecter().Reject(private)
}
