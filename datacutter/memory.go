package datacutter

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
)

// NewMemory returns a Network within the process, for tests and examples. Its hosts are those that share it.
func NewMemory() Network { return &memoryNetwork{listeners: make(map[string]*memoryListener)} }

// A memoryNetwork is the Network of NewMemory.
type memoryNetwork struct {
	mu        sync.Mutex
	last      int
	listeners map[string]*memoryListener // by address
}

// Listen returns a listener with a unique address.
func (m *memoryNetwork) Listen(context.Context) (net.Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	l := &memoryListener{network: m, addr: memoryAddr("memory:" + strconv.Itoa(m.last)), dialed: make(chan net.Conn), closed: make(chan struct{})}
	m.listeners[l.addr.String()] = l
	return l, nil
}

// Dial connects to a listener. It blocks until the listener accepts.
func (m *memoryNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	m.mu.Lock()
	l := m.listeners[addr]
	m.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: connection refused", addr)
	}
	here, there := newPipe()
	select {
	case l.dialed <- there:
		return here, nil
	case <-l.closed:
		return nil, fmt.Errorf("dial %s: connection refused", addr)
	case <-ctx.Done():
		return nil, fmt.Errorf("dial %s: %w", addr, context.Cause(ctx))
	}
}

type memoryListener struct {
	network *memoryNetwork
	addr    memoryAddr
	dialed  chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.dialed:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.listeners, l.addr.String())
		l.network.mu.Unlock()
		close(l.closed)
	})
	return nil
}

func (l *memoryListener) Addr() net.Addr { return l.addr }

type memoryAddr string

func (memoryAddr) Network() string  { return "memory" }
func (a memoryAddr) String() string { return string(a) }
