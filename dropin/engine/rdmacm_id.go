package main

/*
#include "rdmacm.h"
*/
import "C"

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"slices"
	"unsafe"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// A cmState is the state of an id, enum rdma_cm_state of the kernel.
type cmState uint8

const (
	cmIdle cmState = iota
	cmBound
	cmAddrResolved
	cmRouteResolved
	cmConnect // from rdma_connect or the arrival of a request on
	cmDisconnected
	cmListen
)

// A cmID is the kernel's side of an rdma_cm_id.
type cmID struct {
	number  uint32 // that the program's library uses in commands
	uid     uint64 // of the program's library, in events; 0 of a request that is not accepted yet
	channel *cmChannel
	space   mad.PortSpace
	qpType  verbs.QPType
	state   cmState
	dead    bool // destroyed

	src, dst netip.AddrPort // src may have the unspecified address
	device   *device        // nil until the address is bound to one

	reported uint32 // events that the program has read
	pending  int    // requests of a listener that the program has not read
	backlog  int

	trafficClass uint8
	ackTimeout   uint8 // code; 0 is the default
	reuseAddr    bool
	published    bool // the port, to other processes

	psn                uint32
	param              connParam // of the local side
	params             cm.Params // of the peer, once known
	peer               netip.AddrPort
	conn               *cm.Conn
	request            *cm.Request
	udRequest          *cm.UDRequest
	services           []*cmService       // of a listener
	service            *cmService         // of a request
	cancel             context.CancelFunc // ends an outstanding dial; nil if there is none
	groups             map[uint32]*cmGroup
	qkey               uint32
	respondedToRequest bool // accepted or rejected
}

// connParam has the fields of a rdma_ucm_conn_param that remain of interest after rdma_connect.
type connParam struct {
	responderResources, initiatorDepth, retries uint8
}

// cmIDs are all ids by number.
var cmIDs = map[uint32]*cmID{}

var lastCMNumber uint32

// newCMNumber returns an unused number of an id or group. librdmacm keeps numbers below 2^16 in a table.
func newCMNumber() uint32 {
	for {
		lastCMNumber = (lastCMNumber + 1) % (1 << 16)
		if _, ok := cmIDs[lastCMNumber]; !ok && cmGroups[lastCMNumber] == nil {
			return lastCMNumber
		}
	}
}

// newCMID adds an id to a channel, or returns nil if there are too many.
func newCMID(ch *cmChannel, uid uint64, space mad.PortSpace, qpType verbs.QPType) *cmID {
	if len(cmIDs)+len(cmGroups) >= 1<<16-1 {
		return nil
	}
	var b [4]byte
	rand.Read(b[:])
	id := &cmID{
		number: newCMNumber(), uid: uid, channel: ch, space: space, qpType: qpType,
		psn: binary.NativeEndian.Uint32(b[:]) & 0xffffff, groups: make(map[uint32]*cmGroup),
	}
	cmIDs[id.number] = id
	ch.ids[id.number] = id
	return id
}

// isDatagram reports whether the id is for UD.
func (id *cmID) isDatagram() bool { return id.qpType == verbs.UD }

// hasConnection reports whether the id has a communication ID of the InfiniBand CM: it has sent or
// received a request, or listens.
func (id *cmID) hasConnection() bool { return id.state >= cmConnect }

// manager returns the connection manager of the id's device.
func (id *cmID) manager() (*cm.Manager, error) { return id.device.manager() }

// queueEvent queues an event for the id, unless the program has not accepted the request yet or has
// destroyed the id.
func (id *cmID) queueEvent(kind int, status int, fill func(*cmEvent)) {
	if id.dead || id.uid == 0 {
		return
	}
	e := &cmEvent{id: id}
	e.resp.uid, e.resp.id = C.__u64(id.uid), C.__u32(id.number)
	e.resp.event, e.resp.status = C.__u32(kind), C.__u32(uint32(int32(status)))
	if fill != nil {
		fill(e)
	}
	id.channel.queue(e)
}

// fillConn sets the parameters of a connection in an event.
func (e *cmEvent) fillConn(fill func(*C.struct_rdma_ucm_conn_param), private []byte) {
	p := (*C.struct_rdma_ucm_conn_param)(unsafe.Pointer(&e.resp.param))
	p.private_data_len = C.__u8(copyPrivate(unsafe.Slice((*byte)(unsafe.Pointer(&p.private_data)), len(p.private_data)), private))
	if fill != nil {
		fill(p)
	}
}

// fillUD sets the parameters of datagrams in an event.
func (e *cmEvent) fillUD(fill func(*C.struct_rdma_ucm_ud_param), private []byte) {
	p := (*C.struct_rdma_ucm_ud_param)(unsafe.Pointer(&e.resp.param))
	p.private_data_len = C.__u8(copyPrivate(unsafe.Slice((*byte)(unsafe.Pointer(&p.private_data)), len(p.private_data)), private))
	if fill != nil {
		fill(p)
	}
}

// copyPrivate copies private data and returns its length, which fits the field of 8 bits.
func copyPrivate(to, private []byte) int { return copy(to[:len(to)-1], private) }

// destroy ends an id with its connection, drops its events and returns the number of events that the
// program has read.
func (id *cmID) destroy() uint32 {
	if id.dead {
		return id.reported
	}
	id.dead = true
	delete(cmIDs, id.number)
	delete(id.channel.ids, id.number)
	id.releasePort()
	services := id.services
	id.closeServices(serviceGrace)
	for _, r := range id.channel.dropEvents(id, nil) {
		r.passOn(services)
	}
	for _, g := range id.groups {
		delete(cmGroups, g.number)
	}
	if id.cancel != nil {
		id.cancel()
	}
	switch {
	case id.conn != nil:
		disconnectNow(id.conn)
	case id.respondedToRequest:
	case id.request != nil:
		id.request.Reject(mad.RejConsumer, nil) //nolint:errcheck // the request may be withdrawn
	case id.udRequest != nil:
		id.udRequest.Reject(cm.UDReject, nil) //nolint:errcheck // the request may be withdrawn
	}
	return id.reported
}

// passOn destroys the id of a request that the program has not seen and leaves the request to the
// next listener of the port.
func (id *cmID) passOn(services []*cmService) {
	s := id.service
	if slices.Contains(services, s) && len(s.held) < maxHeld {
		id.respondedToRequest = true // and not rejected
		if id.request != nil {
			s.held = append(s.held, s.holdRequest(id.request))
		} else {
			s.held = append(s.held, s.holdDatagrams(id.udRequest))
		}
	}
	id.destroy()
}

// disconnectNow starts the end of a connection and does not wait for the peer.
func disconnectNow(c *cm.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.Disconnect(ctx, nil) //nolint:errcheck // the canceled context
}
