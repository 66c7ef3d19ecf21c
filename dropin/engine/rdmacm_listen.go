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
	on := devices
	if id.device != nil {
		on = []*device{id.device}
	}
	ctx, cancel := context.WithCancel(context.Background())
	for _, d := range on {
		if err := id.listenOn(ctx, d); err != nil {
			cancel()
			for _, l := range id.listeners {
				l.Close() //nolint:errcheck // the listener ends
			}
			id.listeners = nil
			if errors.Is(err, cm.ErrInUse) {
				return C.EADDRINUSE
			}
			return errnoOf(err)
		}
	}
	id.cancel = cancel
	id.state = cmListen
	return 0
}

// listenOn listens on one device and starts a goroutine for its requests.
func (id *cmID) listenOn(ctx context.Context, d *device) error {
	m, err := d.manager()
	if err != nil {
		return err
	}
	o := cm.ListenOptions{PortSpace: id.space}
	if id.isDatagram() {
		l, err := m.ListenUD(id.src.Port(), o)
		if err != nil {
			return err
		}
		id.listeners = append(id.listeners, l)
		go id.acceptDatagrams(ctx, l, d)
		return nil
	}
	l, err := m.Listen(id.src.Port(), o)
	if err != nil {
		return err
	}
	id.listeners = append(id.listeners, l)
	go id.acceptRequests(ctx, l, d)
	return nil
}

// acceptRequests queues an event for each request until the listener is closed. It acquires cmMu.
func (id *cmID) acceptRequests(ctx context.Context, l *cm.Listener, d *device) {
	for {
		r, err := l.Accept(ctx)
		if err != nil {
			return
		}
		cmMu.Lock()
		if new := id.newRequest(d); new != nil {
			new.paramsOfRequest(r, id)
			id.queueRequest(new, func(e *cmEvent) {
				e.fillConn(func(p *C.struct_rdma_ucm_conn_param) { storeParams(p, &new.params) }, r.PrivateData())
			})
		} else {
			r.Reject(mad.RejConsumer, nil) //nolint:errcheck // the request may be withdrawn
		}
		cmMu.Unlock()
	}
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
