package main

/*
#include "rdmacm.h"
*/
import "C"

import (
	"cmp"
	"context"
	"net/netip"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// connectUD sends the SIDR_REQ of rdma_connect(3).
func (id *cmID) connectUD(m *cm.Manager, private []byte) C.int {
	if len(private) > mad.SIDRReqPrivateLen-mad.CMAHeaderLen {
		return C.EINVAL
	}
	id.state = cmConnect
	ctx, cancel := context.WithCancel(context.Background())
	id.cancel = cancel
	o := cm.UDDialOptions{PrivateData: private, PortSpace: id.space, LocalPort: id.src.Port()}
	dst := id.dst
	go func() {
		defer reportPanic()
		peer, err := m.DialUD(ctx, dst, o)
		cmMu.Lock()
		defer cmMu.Unlock()
		id.cancel = nil
		if err != nil {
			id.reportFailure(err)
			return
		}
		peer.AH.TrafficClass = id.trafficClass
		id.queueEvent(C.CM_ESTABLISHED, 0, func(e *cmEvent) {
			e.fillUD(func(p *C.struct_rdma_ucm_ud_param) {
				p.qp_num, p.qkey = C.__u32(peer.QPN), C.__u32(peer.QKey)
				storeAH(&p.ah_attr, peer.AH)
			}, peer.PrivateData)
		})
	}()
	return 0
}

// acceptUD sends the SIDR_REP of rdma_accept(3).
func (id *cmID) acceptUD(qpn, qkey uint32, private []byte) C.int {
	id.qkey = cmp.Or(qkey, id.qkey, cm.UDQKey)
	err := id.udRequest.Accept(cm.UDAcceptOptions{UDQueuePair: cm.UDQueuePair{QPN: qpn & 0xffffff, QKey: id.qkey}, PrivateData: private})
	id.respondedToRequest = err == nil
	return errnoOf(err)
}

// acceptDatagrams is acceptRequests for SIDR_REQs.
func (s *cmService) acceptDatagrams(l *cm.UDListener) {
	defer reportPanic()
	for {
		r, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		s.handle(s.holdDatagrams(r))
	}
}

// holdDatagrams is holdRequest for a SIDR_REQ.
func (s *cmService) holdDatagrams(r *cm.UDRequest) heldRequest {
	reject := func(noListener bool) {
		status := cm.UDReject
		if noListener {
			status = mad.SIDRUnsupported
		}
		r.Reject(status, nil) //nolint:errcheck // the request may be withdrawn
	}
	return heldRequest{reject: reject, deliver: func(id *cmID) {
		new := id.newRequest(s.key.device)
		if new == nil {
			reject(false)
			return
		}
		new.service, new.udRequest = s, r
		new.setAddresses(id, r.LocalAddr(), r.RemoteAddr())
		id.queueRequest(new, func(e *cmEvent) { e.fillUD(nil, r.PrivateData()) })
	}}
}

// A cmGroup is a multicast group that an id has joined.
type cmGroup struct {
	number   uint32 // in the program's commands
	id       *cmID
	uid      uint64 // of the program's library, in events
	reported uint32 // events that the program has read
}

// cmGroups are all joined groups by number.
var cmGroups = map[uint32]*cmGroup{}

// joinMulticast handles rdma_join_multicast(3). The program's library attaches the queue pair when
// it gets the event; the network learns of members by IGMP or MLD then.
func (c cmCommand) joinMulticast() C.int {
	r := readCommand[C.struct_rdma_ucm_join_ip_mcast](c)
	addr, ok := parseSockaddr(&r.addr)
	if !ok || c.out < 4 {
		return C.EINVAL
	}
	id, errno := c.findBound(r.id)
	switch {
	case errno != 0:
		return errno
	case !id.isDatagram() || id.state != cmBound && id.state != cmAddrResolved || addr.Addr().IsUnspecified():
		return C.EINVAL
	case len(cmIDs)+len(cmGroups) >= 1<<16-1:
		return C.ENOMEM
	}
	id.qkey = cmp.Or(id.qkey, cm.UDQKey)
	g := &cmGroup{number: newCMNumber(), id: id, uid: uint64(r.uid)}
	id.groups[g.number], cmGroups[g.number] = g, g
	id.queueMulticast(g, addr.Addr())
	return respond(c, r.response, &C.struct_rdma_ucm_create_id_resp{id: C.__u32(g.number)})
}

// queueMulticast queues the event of a joined group.
func (id *cmID) queueMulticast(g *cmGroup, addr netip.Addr) {
	id.queueEvent(C.CM_MULTICAST_JOIN, 0, func(e *cmEvent) {
		e.group = g
		e.resp.uid = C.__u64(g.uid)
		e.fillUD(func(p *C.struct_rdma_ucm_ud_param) {
			p.qp_num, p.qkey = multicastQPN, C.__u32(id.qkey)
			storeAH(&p.ah_attr, verbs.AHAttr{DGID: verbs.GIDFromAddr(addr), TrafficClass: id.trafficClass})
		}, nil)
	})
}

// leaveMulticast handles rdma_leave_multicast(3).
func (c cmCommand) leaveMulticast() C.int {
	r := readCommand[C.struct_rdma_ucm_destroy_id](c)
	g := cmGroups[uint32(r.id)]
	switch {
	case g == nil:
		return C.ENOENT
	case g.id.channel != c.channel:
		return C.EINVAL
	}
	delete(cmGroups, g.number)
	delete(g.id.groups, g.number)
	c.channel.dropEvents(g.id, g)
	return respond(c, r.response, &C.struct_rdma_ucm_destroy_id_resp{events_reported: C.__u32(g.reported)})
}
