package sockets

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// KeepAlive is the default of [sdp.Options.KeepAlive] for the tools. A tool has nothing else
// to do than to pass bytes on, so it probes a silent peer sooner than a program that has its
// own deadlines: a peer that has died is an error within 5 s, of which the adapter takes
// about 2 s for its retries.
const KeepAlive = 1500 * time.Millisecond

// tcpKeepAlive is the same for TCP: a host that has vanished is an error after 4 s without
// traffic.
var tcpKeepAlive = net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 2}

// Conn is a stream: a *sdp.Conn or a *net.TCPConn.
type Conn interface {
	net.Conn
	CloseWrite() error
	SetLinger(seconds int) error
}

// Sockets makes streams. Its methods may be called from any goroutine.
type Sockets struct {
	place   rdmacm.DeviceSource
	options sdp.Options

	mu        sync.Mutex
	endpoints []endpoint
	dialing   map[netip.Addr]*sdp.Stack // that dial an address
}

// endpoint is an adapter with its stack.
type endpoint struct {
	*rdmacm.Endpoint
	stack *sdp.Stack
}

// New makes a maker of streams, with the options that its connections by SDP
// have; a KeepAlive of 0 means [KeepAlive]. It must be closed.
func New(p rdmacm.DeviceSource, o sdp.Options) *Sockets {
	o.KeepAlive = cmp.Or(o.KeepAlive, KeepAlive)
	return &Sockets{place: p, options: o, dialing: make(map[netip.Addr]*sdp.Stack)}
}

// Listen waits for connections at a point. For SDP a host is the adapter's
// address; without one it is where the place opens a device.
func (s *Sockets) Listen(ctx context.Context, at Addr) (net.Listener, error) {
	if at.Network == TCP {
		l := net.ListenConfig{KeepAliveConfig: tcpKeepAlive}
		return l.Listen(ctx, "tcp", at.hostPort())
	}
	bind, err := rdmacm.ResolveBind(ctx, at.Host, "")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stack, err := s.openStack(func() (*rdmacm.Endpoint, error) { return rdmacm.OpenServer(s.place, bind) })
	if err != nil {
		return nil, err
	}
	return stack.ListenPort(at.Port, 0)
}

// Dial connects to a point. A Dial by SDP goes through an adapter at an address
// that leads there.
func (s *Sockets) Dial(ctx context.Context, to Addr) (Conn, error) {
	if to.Network == TCP {
		d := net.Dialer{KeepAliveConfig: tcpKeepAlive}
		c, err := d.DialContext(ctx, "tcp", to.hostPort())
		if err != nil {
			return nil, err
		}
		return c.(*net.TCPConn), nil
	}
	addr, err := rdmacm.Resolve(ctx, to.Host, "")
	if err != nil {
		return nil, err
	}
	stack, err := s.dialingStack(addr)
	if err != nil {
		return nil, err
	}
	return stack.DialAddr(ctx, netip.AddrPortFrom(addr, to.Port), sdp.Dialer{})
}

// dialingStack is the stack that dials an address.
func (s *Sockets) dialingStack(to netip.Addr) (*sdp.Stack, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stack := s.dialing[to]; stack != nil {
		return stack, nil
	}
	place := s.place
	if place.Open != nil {
		place.Open = s.openAnyPort
	}
	stack, err := s.openStack(func() (*rdmacm.Endpoint, error) { return rdmacm.OpenClient(place, to, netip.Addr{}) })
	if err == nil {
		s.dialing[to] = stack
	}
	return stack, err
}

// openAnyPort opens a device that nobody has to find: on another UDP port if 4791 is
// taken, which peers are told.
func (s *Sockets) openAnyPort(at netip.AddrPort) (verbs.Device, error) {
	dev, err := s.place.Open(at)
	if errors.Is(err, syscall.EADDRINUSE) && at.Port() != 0 {
		return s.place.Open(netip.AddrPortFrom(at.Addr(), 0))
	}
	return dev, err
}

// openStack makes a stack on an adapter. If the place has one for all, they share
// it. The lock is held.
func (s *Sockets) openStack(open func() (*rdmacm.Endpoint, error)) (*sdp.Stack, error) {
	if s.place.Device != nil && len(s.endpoints) > 0 {
		return s.endpoints[0].stack, nil
	}
	e, err := open()
	if err != nil {
		return nil, err
	}
	stack, err := sdp.New(e.Device, e.Manager, s.options)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	s.endpoints = append(s.endpoints, endpoint{e, stack})
	return stack, nil
}

// Close ends everything. Connections that were closed before are given until ctx
// ends to deliver what was written; if that is not enough it is an error.
func (s *Sockets) Close(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.endpoints {
		if late := e.stack.Drain(ctx); late != nil {
			err = errors.Join(err, late)
		}
		err = errors.Join(err, e.stack.Close(), e.Endpoint.Close())
	}
	s.endpoints, s.dialing = nil, make(map[netip.Addr]*sdp.Stack)
	return err
}
