package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/softrnic/softrnic/cm"
)

// A Request is a client's request: *cm.Request or *cm.UDRequest.
type Request interface {
	RemoteAddr() netip.AddrPort
	PrivateData() []byte
}

// reject rejects a request with up to 136 bytes of private data.
func reject(r Request, private []byte) error {
	switch r := r.(type) {
	case *cm.Request:
		return r.Reject(cm.ConsumerReject, private)
	case *cm.UDRequest:
		return r.Reject(cm.UDReject, private)
	default:
		panic(fmt.Sprintf("rdmacm: request of type %T", r))
	}
}

// A Server accepts the requests of clients at one or several addresses, with an adapter for each.
type Server[R Request] struct {
	endpoints  []*Endpoint
	listeners  []listener[R]
	requests   chan Incoming[R]
	stop       context.CancelFunc
	forwarders sync.WaitGroup
	done       chan struct{} // closed when no listener is left
}

// An Incoming is a request with the endpoint that received it.
type Incoming[R Request] struct {
	Request  R
	Endpoint *Endpoint
}

type listener[R Request] interface {
	Accept(context.Context) (R, error)
	Addr() netip.AddrPort
	Close() error
}

// Listen returns a server of connections. bind is one address; the zero Addr and "::" stand for
// all addresses of the machine, and 0.0.0.0 for all IPv4 addresses. Addresses at which no adapter
// can be opened are reported to skipped, unless none can be opened at all, which is an error. port
// is a port of RDMA-CM; 0 is any free one. The caller must close the server.
func Listen(p DeviceSource, bind netip.Addr, port uint16, o cm.ListenOptions, skipped func(error)) (*Server[*cm.Request], error) {
	listen := func(m *cm.Manager, port uint16) (listener[*cm.Request], error) { return m.Listen(port, o) }
	return newServer(p, bind, port, listen, skipped)
}

// ListenUD returns a server of datagrams (SIDR); otherwise it is like Listen.
func ListenUD(p DeviceSource, bind netip.Addr, port uint16, o cm.ListenOptions, skipped func(error)) (*Server[*cm.UDRequest], error) {
	listen := func(m *cm.Manager, port uint16) (listener[*cm.UDRequest], error) { return m.ListenUD(port, o) }
	return newServer(p, bind, port, listen, skipped)
}

func newServer[R Request](p DeviceSource, bind netip.Addr, port uint16, listen func(*cm.Manager, uint16) (listener[R], error), skipped func(error)) (*Server[R], error) {
	s := &Server[R]{requests: make(chan Incoming[R]), done: make(chan struct{})}
	err := s.openEndpoints(p, bind, skipped)
	for _, e := range s.endpoints {
		if err != nil {
			break
		}
		var l listener[R]
		if l, err = listen(e.Manager, port); err == nil {
			s.listeners = append(s.listeners, l)
			port = l.Addr().Port()
		}
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	for i, l := range s.listeners {
		s.forwarders.Go(func() { s.forwardRequests(ctx, l, s.endpoints[i]) })
	}
	go func() {
		s.forwarders.Wait()
		close(s.done)
	}()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openEndpoints opens an endpoint for each address of bind.
func (s *Server[R]) openEndpoints(p DeviceSource, bind netip.Addr, skipped func(error)) error {
	if p.Device != nil || bind.IsValid() && !bind.IsUnspecified() {
		at := netip.AddrPort{}
		if p.Device == nil {
			at = netip.AddrPortFrom(bind, RoCEPort)
		}
		e, err := p.openEndpoint(at, bind)
		if err != nil {
			return err
		}
		s.endpoints = append(s.endpoints, e)
		if port := e.Manager.Addr().Port(); port != RoCEPort {
			return portError(port)
		}
		return nil
	}
	own, err := localAddrs()
	if err != nil {
		return err
	}
	var errs []error
	for _, ip := range own {
		if bind.Is4() && !ip.Is4() {
			continue
		}
		e, err := p.openEndpoint(netip.AddrPortFrom(ip, RoCEPort), netip.Addr{})
		if err != nil {
			errs = append(errs, fmt.Errorf("listen at %v: %w", ip, err))
			continue
		}
		s.endpoints = append(s.endpoints, e)
	}
	if len(s.endpoints) == 0 {
		return errors.Join(append(errs, errors.New("no address to listen at"))...)
	}
	for _, err := range errs {
		skipped(err)
	}
	return nil
}

// forwardRequests passes the requests of one listener to Accept.
func (s *Server[R]) forwardRequests(ctx context.Context, l listener[R], e *Endpoint) {
	for {
		r, err := l.Accept(ctx)
		if err != nil {
			return
		}
		select {
		case s.requests <- Incoming[R]{r, e}:
		case <-ctx.Done():
			_ = reject(r, nil) // fails if the client has withdrawn it
			return
		}
	}
}

// Accept waits for a request. The caller must accept or reject it.
func (s *Server[R]) Accept(ctx context.Context) (Incoming[R], error) {
	select {
	case a := <-s.requests:
		return a, nil
	case <-s.done:
		return Incoming[R]{}, cm.ErrClosed
	case <-ctx.Done():
		return Incoming[R]{}, context.Cause(ctx)
	}
}

// Addrs returns the addresses and ports of RDMA-CM of all listeners.
func (s *Server[R]) Addrs() (list []netip.AddrPort) {
	for _, l := range s.listeners {
		list = append(list, l.Addr())
	}
	return list
}

// Stop rejects pending and later requests. Connections stay open.
func (s *Server[R]) Stop() error {
	var errs []error
	for _, l := range s.listeners {
		errs = append(errs, l.Close())
	}
	s.stop()
	<-s.done
	return errors.Join(errs...)
}

// Close stops the server and closes its endpoints.
func (s *Server[R]) Close() error {
	err := s.Stop()
	for _, e := range s.endpoints {
		err = errors.Join(err, e.Close())
	}
	return err
}
