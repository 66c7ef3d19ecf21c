// Package sockets dials and accepts streams over SDP or TCP for the SDP tools, and opens
// the adapters that SDP needs.
//
//	at, err := sockets.ParseAddr("sdp:192.0.2.1:7471") // or tcp:localhost:80
//	s := sockets.New(source, sdp.Options{})
//	defer s.Close(ctx)                                 // delivers written data
//	l, err := s.Listen(ctx, at)                        // a net.Listener
//	conn, err := s.Dial(ctx, at)                       // a Conn, which has CloseWrite
//
// Adapters are opened on demand: a listener's at its address, one for dialing at the
// source address of the route to the peer.
package sockets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// KeepAlive is the default of [sdp.Options.KeepAlive] for the tools. They only forward bytes, so
// they probe an idle peer sooner than a program with deadlines of its own: a dead peer is an error
// within 5 s, of which the adapter's retries take about 2 s.
const KeepAlive = 1500 * time.Millisecond

// tcpKeepAlive is the keepalive of TCP: a vanished host is an error after 4 s without traffic.
var tcpKeepAlive = net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 2}

// A Conn is a stream: a *sdp.Conn or a *net.TCPConn.
type Conn interface {
	net.Conn
	CloseWrite() error
	SetLinger(seconds int) error
}

// A Sockets dials and accepts streams. Its methods may be called from any goroutine.
type Sockets struct {
	place   rdmacm.DeviceSource
	options sdp.Options

	mu        sync.Mutex
	endpoints []endpoint
	dialing   map[netip.Addr]*sdp.Stack // stacks for dialing, by remote address
}

// An endpoint is an adapter with its SDP stack.
type endpoint struct {
	*rdmacm.Endpoint
	stack *sdp.Stack
}

// New returns a Sockets whose SDP connections have the options o; a KeepAlive of 0 means
// [KeepAlive]. The caller must close it.
func New(p rdmacm.DeviceSource, o sdp.Options) *Sockets {
	o.KeepAlive = cmp.Or(o.KeepAlive, KeepAlive)
	return &Sockets{place: p, options: o, dialing: make(map[netip.Addr]*sdp.Stack)}
}

// Listen listens at an address. For SDP the host is the adapter's address; without one the source
// chooses it.
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
	return stack.Listen("sdp", fmt.Sprintf(":%d", at.Port))
}

// Dial connects to an address. For SDP it uses an adapter with a route there.
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
	c, err := stack.DialContext(ctx, "sdp", netip.AddrPortFrom(addr, to.Port).String())
	if err != nil {
		return nil, err
	}
	return c.(*sdp.Conn), nil
}

// dialingStack returns the stack that dials an address.
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

// openAnyPort opens a device for dialing: on another UDP port if 4791 is in use, which RDMA-CM
// tells the peer.
func (s *Sockets) openAnyPort(at netip.AddrPort) (verbs.Device, error) {
	dev, err := s.place.Open(at)
	if errors.Is(err, syscall.EADDRINUSE) && at.Port() != 0 {
		return s.place.Open(netip.AddrPortFrom(at.Addr(), 0))
	}
	return dev, err
}

// openStack returns a stack on a new adapter, or the existing one if the source has one device.
// s.mu must be held.
func (s *Sockets) openStack(open func() (*rdmacm.Endpoint, error)) (*sdp.Stack, error) {
	if s.place.Device != nil && len(s.endpoints) > 0 {
		return s.endpoints[0].stack, nil
	}
	e, err := open()
	if err != nil {
		return nil, err
	}
	o := s.options
	o.Manager = e.Manager
	stack, err := sdp.New(e.Device, o)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	s.endpoints = append(s.endpoints, endpoint{e, stack})
	return stack, nil
}

// Close closes everything. Closed connections have until the end of ctx to deliver written data;
// undelivered data is an error.
func (s *Sockets) Close(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.endpoints {
		err = errors.Join(err, e.stack.Shutdown(ctx), e.Endpoint.Close())
	}
	s.endpoints, s.dialing = nil, make(map[netip.Addr]*sdp.Stack)
	return err
}
