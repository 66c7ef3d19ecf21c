package sdp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/pages"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
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
	closeOnce  sync.Once
	closeErr   error          // of Close
	goroutines sync.WaitGroup // of the stack
	inUse      sync.WaitGroup // handshakes and other users of the adapter; see acquire

	mu        sync.Mutex
	listeners map[io.Closer]struct{} // open Listeners
	conns     map[verbs.CQ]*Conn     // established connections by their CQ
	idleConns []*Conn                // connections that the idle poller watches
	packets   map[io.Closer]struct{} // open PacketConns
	closed    bool
	idleWake  chan struct{} // signaled when idleConns is not empty

	ports atomic.Uint32 // for nextEphemeralPort
}

// acceptTime is the maximum duration of a handshake with an accepted peer.
const acceptTime = 10 * time.Second

// returnTime is the time that a peer has to return lent memory, 1 minute plus 1 s per MiB.
const returnTime = time.Minute

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
		conns: make(map[verbs.CQ]*Conn), listeners: make(map[io.Closer]struct{}), packets: make(map[io.Closer]struct{}), idleWake: make(chan struct{}, 1),
	}
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

// isOpen reports whether New created s. A nil or zero Stack behaves as a closed one.
func (s *Stack) isOpen() bool { return s != nil && s.ctx != nil }

// ownAddr returns the address of the device, or the zero Addr of a stack that is not open.
func (s *Stack) ownAddr() netip.Addr {
	if !s.isOpen() {
		return netip.Addr{}
	}
	return s.cm.Addr().Addr()
}

func (s *Stack) isClosed() bool {
	if !s.isOpen() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
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

// A region is registered memory of a connection. Large regions are allocated outside of the heap,
// because thousands of mostly unused buffers would let the garbage grow by their size before the
// next collection.
type region struct {
	verbs.MR
	free func()
}

// newRegion returns a zeroed region of n bytes.
func (s *Stack) newRegion(n int, access verbs.AccessFlags) (region, error) {
	mem, free := pages.Alloc(n)
	mr, err := s.pd.RegMR(mem, access)
	if err != nil {
		free()
		return region{}, err
	}
	return region{mr, free}, nil
}

// deregister frees a region. No other user of its memory may remain.
func (r region) deregister() {
	if r.Close() == nil {
		r.free()
	}
}

// protocolMemory returns the region in the form that the core uses.
func (r region) protocolMemory() protocol.Memory {
	return protocol.Memory{Bytes: r.Bytes(), Addr: r.Addr(), LKey: r.LKey(), RKey: r.RKey()}
}
