package sdp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Stack is SDP on a device: it dials, listens, and looks after connections
// while no call does. Its methods may be called from any goroutine.
type Stack struct {
	dev     verbs.Device
	cm      *cm.Manager
	ownsCM  bool
	pd      verbs.PD
	channel verbs.CompChannel
	options Options

	returnTime time.Duration // see Conn.reclaimMemory
	acceptTime time.Duration // see Stack.acceptConn

	ctx        context.Context // ends with the stack
	cancel     context.CancelFunc
	closeOnce  func() error   // close, once
	goroutines sync.WaitGroup // of its goroutines
	inUse      sync.WaitGroup // handshakes, and what else begin has let begin

	mu        sync.Mutex
	conns     map[verbs.CQ]*Conn       // established and not ended, by their queues
	idleConns []*Conn                  // that a call has left and nobody looks after
	packets   map[*PacketConn]struct{} // that have not ended
	closed    bool
	idleWake  chan struct{} // recent is not empty

	ports atomic.Uint32 // dialed
}

// New makes a stack on a device. A device has one connection manager: m is that,
// or nil if nothing else needs one.
func New(dev verbs.Device, m *cm.Manager, o Options) (*Stack, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := verbs.CheckDevice(dev); err != nil {
		return nil, fmt.Errorf("sdp: %w", err)
	}
	s := &Stack{
		dev: dev, cm: m, options: o, returnTime: returnTime, acceptTime: acceptTime,
		conns: make(map[verbs.CQ]*Conn), packets: make(map[*PacketConn]struct{}), idleWake: make(chan struct{}, 1),
	}
	s.closeOnce = sync.OnceValue(s.close)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.openResources(); err != nil {
		s.freeResources()
		return nil, fmt.Errorf("sdp: %w", err)
	}
	s.goroutines.Add(2)
	go s.serveEvents()
	go s.runIdlePoller()
	return s, nil
}

func (s *Stack) openResources() (err error) {
	if s.cm == nil {
		switch s.cm, err = cm.New(s.dev, cm.Options{}); {
		case errors.Is(err, verbs.ErrBusy):
			return fmt.Errorf("the device has a connection manager already, another Stack's perhaps: share that Stack, or give both the manager: %w", err)
		case err != nil:
			return err
		}
		s.ownsCM = true
	}
	if s.pd, err = s.dev.AllocPD(); err != nil {
		return err
	}
	if s.channel, err = s.dev.CreateCompChannel(); err != nil {
		return err
	}
	return s.channel.Handle(s.handleInterrupt)
}

func (s *Stack) freeResources() (err error) {
	s.cancel()
	if s.channel != nil {
		err = errors.Join(err, s.channel.Destroy())
	}
	if s.pd != nil {
		err = errors.Join(err, s.pd.Dealloc())
	}
	if s.ownsCM {
		err = errors.Join(err, s.cm.Close())
	}
	return err
}

// Close ends all connections at once, and the stack. Connections that are to
// end well are closed before, and given their time: see [Stack.Drain]. To close twice is
// safe; whoever does waits for the end and has the same error.
func (s *Stack) Close() error {
	if !s.isOpen() {
		return errClosedStack
	}
	return s.closeOnce()
}

// isOpen reports whether New has made s: nil and the zero value act as closed stacks.
func (s *Stack) isOpen() bool { return s != nil && s.closeOnce != nil }

// isClosed reports whether nothing can be opened any more.
func (s *Stack) isClosed() bool {
	if !s.isOpen() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Stack) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel() // ends listeners and handshakes: nobody enters any more
	s.inUse.Wait()
	s.goroutines.Wait()
	s.mu.Lock()
	conns := slices.Collect(maps.Values(s.conns))
	packets := slices.Collect(maps.Keys(s.packets))
	s.mu.Unlock()
	for _, c := range packets {
		_ = c.Close()
	}
	for _, c := range conns {
		c.abort() // all at a time: peers may be gone, and saying good-bye takes long then
	}
	for _, c := range conns {
		<-c.done
	}
	return s.freeResources()
}

// Drain waits until every connection that was closed is gone: what was written
// to it has arrived, or cannot, which the log tells of. If ctx ends before, the error names
// the first peer that is waited for, and what for. A nil context never ends.
func (s *Stack) Drain(ctx context.Context) error {
	if !s.isOpen() {
		return errClosedStack
	}
	if ctx == nil {
		ctx = context.Background()
	}
	s.mu.Lock()
	var closed []*Conn
	for _, c := range s.conns {
		if c.isLingering.Load() {
			closed = append(closed, c)
		}
	}
	s.mu.Unlock()
	for _, c := range closed {
		select {
		case <-c.done:
		case <-ctx.Done():
			return fmt.Errorf("sdp: the connection with %v is closed, but %s: %w", c.remote, c.pendingReason(), ctx.Err())
		}
	}
	return nil
}

// acquire is the beginning of something that uses the adapter, and has to end
// before the stack lets go of it: by opening.Done, unless there is an error.
func (s *Stack) acquire() error {
	if !s.isOpen() {
		return errClosedStack
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosedStack
	}
	s.inUse.Add(1)
	return nil
}

// addConn adds a connection that is established: the stack ends it when it ends.
func (s *Stack) addConn(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c.cq] = c
}

func (s *Stack) removeConn(c *Conn) {
	s.mu.Lock()
	delete(s.conns, c.cq)
	s.mu.Unlock()
}

var errClosedStack = fmt.Errorf("the stack is closed: %w", net.ErrClosed)
