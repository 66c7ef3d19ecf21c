package sdp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/verbs"
)

// A Stack is an SDP endpoint on a device. It dials, listens, and serves connections outside of
// calls. Its methods are safe for concurrent use.
type Stack struct {
	dev     verbs.Device
	cm      *cm.Manager
	ownsCM  bool
	pd      verbs.PD
	channel verbs.CompChannel
	options Options

	returnTime time.Duration // see Conn.reclaimMemory
	acceptTime time.Duration // see Stack.acceptConn

	ctx        context.Context // canceled by Close
	cancel     context.CancelFunc
	closeOnce  func() error   // calls close once
	goroutines sync.WaitGroup // of the stack
	inUse      sync.WaitGroup // handshakes and other users of the adapter; see acquire

	mu        sync.Mutex
	listeners map[*Listener]struct{}   // open listeners
	conns     map[verbs.CQ]*Conn       // established connections by their CQ
	idleConns []*Conn                  // connections that the idle poller watches
	packets   map[*PacketConn]struct{} // open PacketConns
	closed    bool
	idleWake  chan struct{} // signaled when idleConns is not empty

	ports atomic.Uint32 // for nextEphemeralPort
}

// New returns a stack on a device. Closing the stack does not close the device.
func New(dev verbs.Device, o Options) (*Stack, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := adapter.CheckDevice(dev); err != nil {
		return nil, fmt.Errorf("sdp: %w", err)
	}
	s := &Stack{
		dev: dev, cm: o.Manager, options: o, returnTime: returnTime, acceptTime: acceptTime,
		conns: make(map[verbs.CQ]*Conn), listeners: make(map[*Listener]struct{}), packets: make(map[*PacketConn]struct{}), idleWake: make(chan struct{}, 1),
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

// checkManager returns an error if the connection manager is that of another device.
func checkManager(dev verbs.Device, m *cm.Manager) error {
	gid, err := dev.QueryGID(1, 0)
	if err != nil {
		return err
	}
	port, err := dev.QueryPort(1)
	if err != nil {
		return err
	}
	if at := netip.AddrPortFrom(gid.GID.Addr(), port.UDPPort); m.Addr() != at {
		return fmt.Errorf("%w: Options.Manager: manager of the device at %v, not at %v", verbs.ErrInvalid, m.Addr(), at)
	}
	return nil
}

func (s *Stack) openResources() (err error) {
	if s.cm != nil {
		if err := checkManager(s.dev, s.cm); err != nil {
			return err
		}
	} else {
		switch s.cm, err = cm.New(s.dev, cm.Options{}); {
		case errors.Is(err, verbs.ErrBusy):
			return fmt.Errorf("create connection manager: the device has one already: %w; share its Stack, or set Options.Manager", err)
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
		err = errors.Join(err, s.channel.Close())
	}
	if s.pd != nil {
		err = errors.Join(err, s.pd.Close())
	}
	if s.ownsCM {
		err = errors.Join(err, s.cm.Close())
	}
	return err
}

// Close resets all connections and closes the stack. For an orderly end close the connections and
// call [Stack.Shutdown] instead. Close is idempotent; concurrent calls wait and return the same error.
func (s *Stack) Close() error {
	if !s.isOpen() {
		return nil
	}
	return s.closeOnce()
}

// isOpen reports whether New created s. A nil or zero Stack behaves as a closed one.
func (s *Stack) isOpen() bool { return s != nil && s.closeOnce != nil }

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
	s.cancel() // ends listeners and handshakes, so no connection is added
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
		c.abort() // concurrently, since disconnecting from a failed peer takes long
	}
	for _, c := range conns {
		<-c.done
	}
	return s.freeResources()
}

// Shutdown closes all listeners, blocks until all closed connections have delivered their data, or
// failed to, and then closes the stack, which resets the connections that the program has not
// closed. If ctx is done first, Shutdown closes the stack as well, and the error names the first
// pending peer and the reason. Shutdown is idempotent. A nil ctx is never done.
func (s *Stack) Shutdown(ctx context.Context) error {
	if !s.isOpen() {
		return errClosedStack
	}
	s.mu.Lock()
	listeners := slices.Collect(maps.Keys(s.listeners))
	s.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close() // net.ErrClosed if the program closes it meanwhile
	}
	return errors.Join(s.drain(ctx), s.Close())
}

// drain blocks until all closed connections have delivered their data, or failed to, which the
// log reports. If ctx is done first, the error names the first pending peer and the reason. A nil
// ctx is never done.
func (s *Stack) drain(ctx context.Context) error {
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
			return fmt.Errorf("sdp: shutdown: connection to %v: %s: %w", c.remote, c.pendingReason(), ctx.Err())
		}
	}
	return nil
}

// acquire registers a user of the adapter, which Close waits for. Unless it returns an error, the
// caller must call s.inUse.Done.
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

// addConn registers an established connection to be closed with the stack.
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

var errClosedStack = fmt.Errorf("sdp: stack closed: %w", net.ErrClosed)

// closedError returns the error of a call with a stack that is closed, or missing in a Dialer or
// ListenConfig.
func (s *Stack) closedError() error {
	if s == nil {
		return fmt.Errorf("sdp: field Stack is nil: %w", net.ErrClosed)
	}
	return errClosedStack
}
