package main

/*
#include "rdmacm.h"
*/
import "C"

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/wire/mad"
)

// cmManagers are the connection managers of devices, opened at the first use.
var cmManagers struct {
	mu sync.Mutex // innermost
	m  map[*device]*cm.Manager
}

// manager returns the connection manager of a device.
func (d *device) manager() (*cm.Manager, error) {
	cmManagers.mu.Lock()
	defer cmManagers.mu.Unlock()
	if m := cmManagers.m[d]; m != nil {
		return m, nil
	}
	m, err := cm.New(d.Device, cm.Options{})
	if err != nil {
		return nil, err
	}
	if cmManagers.m == nil {
		cmManagers.m = make(map[*device]*cm.Manager)
	}
	cmManagers.m[d] = m
	return m, nil
}

// closeManagers disconnects all connections when the process ends, as the kernel does.
func closeManagers() {
	cmManagers.mu.Lock()
	defer cmManagers.mu.Unlock()
	for _, m := range cmManagers.m {
		m.Close() //nolint:errcheck // the process ends
	}
}

// A cmService listens to a port of a device for an id. It begins when the program binds the id, and outlives it
// for a moment: programs such as perftest destroy their listener and listen again for the next connection, which
// the peer may request meanwhile. Such requests are held for the next listener.
type cmService struct {
	key      serviceKey
	owner    *cmID // nil between two listeners, and before the first
	listener interface{ Close() error }
	held     []heldRequest
	timer    *time.Timer // closes the service without an owner
}

// A serviceKey names a port of a device.
type serviceKey struct {
	device *device
	port   portKey
}

// cmServices are the services of listeners and those between two listeners.
var cmServices = map[serviceKey]*cmService{}

// A heldRequest is a request that no listener has yet.
type heldRequest struct {
	deliver func(*cmID)
	reject  func(noListener bool)
}

// Bounds on a service without a listener.
const (
	serviceGrace = 300 * time.Millisecond // as long as a program needs to listen again
	boundGrace   = time.Second            // and from the bind to the first time
	maxHeld      = 128
)

// listen listens on the device of the id, or on all devices if its address is the unspecified one.
func (id *cmID) listen() C.int {
	if id.state == cmIdle {
		if errno := id.bindAddr(netip.AddrPortFrom(netip.IPv4Unspecified(), 0)); errno != 0 {
			return errno
		}
	}
	if id.state != cmBound {
		return C.EINVAL
	}
	if id.conflicts(id.src.Port(), true) {
		return C.EADDRINUSE
	}
	if err := id.startServices(); err != nil {
		id.closeServices(0)
		if errors.Is(err, cm.ErrInUse) {
			return C.EADDRINUSE
		}
		return errnoOf(err)
	}
	id.state = cmListen
	for _, s := range id.services {
		s.release()
	}
	return 0
}

// startServices makes the id the owner of the services of its port on its device, or on all.
func (id *cmID) startServices() error {
	on := devices
	if id.device != nil {
		on = []*device{id.device}
	}
	for _, d := range on {
		if err := id.listenOn(d); err != nil {
			return err
		}
	}
	return nil
}

// holdRequests starts the services of a port that a program has bound, and leaves them without an owner until it
// listens: qperf sends the port to its peer before, and a listener of the kernel takes less time than the peer.
func (id *cmID) holdRequests() {
	id.startServices() //nolint:errcheck // listen returns the error
	id.closeServices(boundGrace)
}

// listenOn takes over the service of the id's port on a device, or starts one.
func (id *cmID) listenOn(d *device) error {
	key := serviceKey{d, portKey{id.space, id.src.Port()}}
	if s := cmServices[key]; s != nil && s.owner == nil {
		s.timer.Stop()
		s.owner = id
		id.services = append(id.services, s)
		return nil
	}
	m, err := d.manager()
	if err != nil {
		return err
	}
	s := &cmService{key: key, owner: id}
	o := cm.ListenOptions{PortSpace: id.space}
	if id.isDatagram() {
		l, err := m.ListenUD(id.src.Port(), o)
		if err != nil {
			return err
		}
		s.listener = l
		go s.acceptDatagrams(l)
	} else {
		l, err := m.Listen(id.src.Port(), o)
		if err != nil {
			return err
		}
		s.listener = l
		go s.acceptRequests(l)
	}
	cmServices[key] = s
	publishName(key.port, d.cmAddr())
	id.services = append(id.services, s)
	return nil
}

// handle delivers a request to the listener or holds it for the next one. It acquires cmMu.
func (s *cmService) handle(r heldRequest) {
	cmMu.Lock()
	defer cmMu.Unlock()
	switch {
	case s.owner != nil && s.owner.state == cmListen:
		r.deliver(s.owner)
	case cmServices[s.key] == s && len(s.held) < maxHeld:
		s.held = append(s.held, r)
	default:
		r.reject(true)
	}
}

// release delivers the held requests to the listener.
func (s *cmService) release() {
	held := s.held
	s.held = nil
	for _, r := range held {
		r.deliver(s.owner)
	}
}

// closeServices ends the services of an id after a time, unless another id takes them over.
func (id *cmID) closeServices(after time.Duration) {
	for _, s := range id.services {
		s.owner = nil
		s.timer = time.AfterFunc(after, s.closeUnowned)
	}
	id.services = nil
}

// closeUnowned closes the service unless it has an owner again. It acquires cmMu.
func (s *cmService) closeUnowned() {
	defer reportPanic()
	cmMu.Lock()
	defer cmMu.Unlock()
	if s.owner != nil || cmServices[s.key] != s {
		return
	}
	delete(cmServices, s.key)
	withdrawName(s.key.port, s.key.device.cmAddr())
	for _, r := range s.held {
		r.reject(true)
	}
	s.listener.Close() //nolint:errcheck // the listener ends
}

// acceptRequests handles requests until the listener is closed. It acquires cmMu.
func (s *cmService) acceptRequests(l *cm.Listener) {
	defer reportPanic()
	for {
		r, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		s.handle(s.holdRequest(r))
	}
}

// holdRequest returns a request in the form of a heldRequest.
func (s *cmService) holdRequest(r *cm.Request) heldRequest {
	reject := func(noListener bool) {
		reason := mad.RejConsumer
		if noListener {
			reason = mad.RejInvalidServiceID
		}
		r.Reject(reason, nil) //nolint:errcheck // the request may be withdrawn
	}
	return heldRequest{reject: reject, deliver: func(id *cmID) {
		new := id.newRequest(s.key.device)
		if new == nil {
			reject(false)
			return
		}
		new.service = s
		new.paramsOfRequest(r, id)
		id.queueRequest(new, func(e *cmEvent) {
			e.fillConn(func(p *C.struct_rdma_ucm_conn_param) { storeParams(p, &new.params) }, r.PrivateData())
		})
	}}
}

// newRequest returns an id for a request to the listener id, or nil if the backlog is full.
func (id *cmID) newRequest(d *device) *cmID {
	if id.dead || id.pending >= id.backlog {
		return nil
	}
	new := newCMID(id.channel, 0, id.space, id.qpType)
	if new != nil {
		new.device, new.state, new.trafficClass, new.ackTimeout = d, cmConnect, id.trafficClass, id.ackTimeout
	}
	return new
}

// queueRequest queues the event of a request.
func (id *cmID) queueRequest(new *cmID, fill func(*cmEvent)) {
	id.pending++
	id.queueEvent(C.CM_CONNECT_REQUEST, 0, func(e *cmEvent) {
		e.request = new
		e.resp.id = C.__u32(new.number)
		fill(e)
	})
}

// setAddresses sets the addresses of a request's id. The port remains that of the listener.
func (id *cmID) setAddresses(l *cmID, local, remote netip.AddrPort) {
	id.src, id.dst = netip.AddrPortFrom(local.Addr().Unmap(), l.src.Port()), netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
}
