package main

/*
#include "rdmacm.h"
*/
import "C"

import (
	"context"
	"errors"
	"time"
	"unsafe"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/wire/mad"
)

// timeoutCode returns the code of the shortest timeout that is at least d.
func timeoutCode(d time.Duration) uint8 { return mad.TimeoutCode(int64(d)) }

// Longest private data of the messages that a program sends, without RDMA-CM's header.
const maxREQPrivate = mad.REQPrivateLen - mad.CMAHeaderLen

// privateData returns a copy of the private data in the parameters of a command.
func privateData(p *C.struct_rdma_ucm_conn_param) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&p.private_data)), len(p.private_data))[:p.private_data_len]...)
}

// connect sends the REQ, or SIDR_REQ, of rdma_connect(3).
func (c cmCommand) connect() C.int {
	r := readCommand[C.struct_rdma_ucm_connect](c)
	if r.conn_param.valid == 0 {
		return C.EINVAL
	}
	id, errno := c.findBound(r.id)
	switch {
	case errno != 0:
		return errno
	case id.state != cmRouteResolved:
		return C.EINVAL
	}
	m, err := id.manager()
	if err != nil {
		return errnoOf(err)
	}
	private := privateData(&r.conn_param)
	if id.isDatagram() {
		return id.connectUD(m, private)
	}
	q := id.externalQP(&r.conn_param)
	if q.Num == 0 || len(private) > maxREQPrivate {
		return C.EINVAL
	}
	id.param = connParam{q.ResponderResources, q.InitiatorDepth, q.Retries}
	id.state = cmConnect
	ctx, cancel := context.WithCancel(context.Background())
	id.cancel = cancel
	o := cm.DialOptions{PrivateData: private, PortSpace: id.space, LocalPort: id.src.Port()}
	o.TrafficClass = id.trafficClass
	dst := id.dst
	go func() {
		defer reportPanic()
		conn, err := m.DialExternal(ctx, dst, q, o)
		cmMu.Lock()
		defer cmMu.Unlock()
		id.completeDial(conn, err)
	}()
	return 0
}

// externalQP returns the description of the program's queue pair for REQ and REP.
func (id *cmID) externalQP(p *C.struct_rdma_ucm_conn_param) cm.ExternalQP {
	return cm.ExternalQP{
		Num: uint32(p.qp_num) & 0xffffff, Type: id.qpType, PSN: id.psn,
		ResponderResources: uint8(p.responder_resources), InitiatorDepth: uint8(p.initiator_depth),
		FlowControl: p.flow_control != 0, SRQ: p.srq != 0,
		Retries: min(uint8(p.retry_count), 7), RNRRetries: min(uint8(p.rnr_retry_count), 7), AckTimeout: id.ackTimeoutCode(),
	}
}

// completeDial reports the REP, or the reason for none.
func (id *cmID) completeDial(conn *cm.Conn, err error) {
	if id.dead {
		if conn != nil {
			disconnectNow(conn)
		}
		return
	}
	id.cancel = nil
	if err != nil {
		id.reportFailure(err)
		return
	}
	id.setConn(conn)
	p := id.params
	id.queueEvent(C.CM_CONNECT_RESPONSE, 0, func(e *cmEvent) {
		e.fillConn(func(to *C.struct_rdma_ucm_conn_param) { storeParams(to, &p) }, conn.PrivateData())
	})
	conn.AfterDone(func() { id.reportEnd(conn) })
}

// setConn stores a connection with the peer's parameters.
func (id *cmID) setConn(conn *cm.Conn) {
	id.conn, id.params, id.peer = conn, conn.Params(), conn.RemoteAdapter()
}

// storeParams stores the peer's parameters from the local point of view: the peer's initiator depth
// is the number of reads that the local side serves.
func storeParams(to *C.struct_rdma_ucm_conn_param, p *cm.Params) {
	to.qp_num, to.srq = C.__u32(p.QPN), flag(p.SRQ)
	to.responder_resources, to.initiator_depth = C.__u8(p.InitiatorDepth), C.__u8(p.ResponderResources)
	to.flow_control, to.retry_count, to.rnr_retry_count = flag(p.FlowControl), C.__u8(p.RetryCount), C.__u8(p.RNRRetry)
}

func flag(b bool) C.__u8 {
	if b {
		return 1
	}
	return 0
}

// reportFailure queues the event of a handshake that failed.
func (id *cmID) reportFailure(err error) {
	var rejected *cm.RejectError
	var rejectedUD *cm.UDRejectError
	switch {
	case errors.As(err, &rejected):
		id.queueEvent(C.CM_REJECTED, int(rejected.Reason), func(e *cmEvent) { e.fillConn(nil, rejected.PrivateData) })
	case errors.As(err, &rejectedUD):
		id.queueEvent(C.CM_UNREACHABLE, int(rejectedUD.Status), func(e *cmEvent) { e.fillUD(nil, rejectedUD.PrivateData) })
	case errors.Is(err, cm.ErrUnreachable):
		id.queueEvent(C.CM_UNREACHABLE, -C.ETIMEDOUT, nil)
	default:
		id.queueEvent(C.CM_UNREACHABLE, -int(errnoOf(err)), nil)
	}
}

// timewait is the time from the end of a connection to CM_TIMEWAIT_EXIT: twice the default ACK
// timeout.
const timewait = 2 * 4096 << defaultAckTimeout * time.Nanosecond

// reportEnd queues the event of the end of a connection by the peer, or of its handshake. An end
// by the local side is reported by disconnect. reportEnd acquires cmMu.
func (id *cmID) reportEnd(conn *cm.Conn) {
	cmMu.Lock()
	defer cmMu.Unlock()
	err := conn.Err()
	if id.dead || id.conn != conn || id.state != cmConnect || errors.Is(err, cm.ErrClosed) {
		return
	}
	if !isEstablished(conn) && !errors.Is(err, cm.ErrDisconnected) {
		id.state = cmDisconnected
		id.reportFailure(err)
		return
	}
	id.queueDisconnected(0)
}

func isEstablished(conn *cm.Conn) bool {
	select {
	case <-conn.Established():
		return true
	default:
		return false
	}
}

// queueDisconnected queues CM_DISCONNECTED, and later CM_TIMEWAIT_EXIT.
func (id *cmID) queueDisconnected(status int) {
	id.state = cmDisconnected
	id.queueEvent(C.CM_DISCONNECTED, status, nil)
	time.AfterFunc(timewait, func() {
		cmMu.Lock()
		defer cmMu.Unlock()
		id.queueEvent(C.CM_TIMEWAIT_EXIT, 0, nil)
	})
}

// accept sends the REP of rdma_accept(3), the SIDR_REP, or the RTU of rdma_establish(3).
func (c cmCommand) accept() C.int {
	r := readCommand[C.struct_rdma_ucm_accept](c)
	id, errno := c.findBound(r.id)
	switch {
	case errno != 0:
		return errno
	case id.state != cmConnect:
		return C.EINVAL
	case id.conn != nil && r.conn_param.valid == 0:
		return errnoOf(id.conn.Establish(nil))
	case id.request == nil && id.udRequest == nil || id.respondedToRequest:
		return C.EINVAL
	}
	private := privateData(&r.conn_param)
	if id.isDatagram() {
		errno = id.acceptUD(uint32(r.conn_param.qp_num), uint32(r.conn_param.qkey), private)
	} else {
		errno = id.acceptRC(&r.conn_param, private)
	}
	if errno == 0 {
		id.uid = uint64(r.uid)
	}
	return errno
}

func (id *cmID) acceptRC(p *C.struct_rdma_ucm_conn_param, private []byte) C.int {
	conn, err := id.request.AcceptExternal(id.externalQP(p), private)
	if err != nil {
		return errnoOf(err)
	}
	id.respondedToRequest = true
	id.setConn(conn)
	go func() {
		defer reportPanic()
		select {
		case <-conn.Established():
			cmMu.Lock()
			id.queueEvent(C.CM_ESTABLISHED, 0, nil)
			cmMu.Unlock()
		case <-conn.Done():
			if isEstablished(conn) { // and ended at once
				cmMu.Lock()
				id.queueEvent(C.CM_ESTABLISHED, 0, nil)
				cmMu.Unlock()
			}
		}
		conn.AfterDone(func() { id.reportEnd(conn) })
	}()
	return 0
}

// reject sends the REJ, or SIDR_REP, of rdma_reject(3).
func (c cmCommand) reject() C.int {
	r := readCommand[C.struct_rdma_ucm_reject](c)
	reason := mad.Reason(r.reason)
	switch reason {
	case 0:
		reason = mad.RejConsumer
	case mad.RejConsumer, mad.RejVendorOption:
	default:
		return C.EINVAL
	}
	id, errno := c.findBound(r.id)
	switch {
	case errno != 0:
		return errno
	case id.state != cmConnect:
		return C.EINVAL
	}
	private := append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&r.private_data)), len(r.private_data))[:r.private_data_len]...)
	switch {
	case id.conn != nil && !isEstablished(id.conn):
		if len(private) > mad.REJPrivateLen {
			return C.EINVAL
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		id.conn.Disconnect(ctx, private) //nolint:errcheck // a REJ has no reply
		return 0
	case id.respondedToRequest:
		return C.EINVAL
	case id.request != nil:
		errno = errnoOf(id.request.Reject(reason, private))
	case id.udRequest != nil:
		errno = errnoOf(id.udRequest.Reject(cm.UDReject, private))
	default:
		return C.EINVAL
	}
	id.respondedToRequest = errno == 0
	return errno
}

// disconnect sends the DREQ of rdma_disconnect(3), and reports the end when the peer has replied. A
// connection that the peer has ended needs none.
func (c cmCommand) disconnect() C.int {
	id, errno := c.findBound(readCommand[C.struct_rdma_ucm_disconnect](c).id)
	switch {
	case errno != 0:
		return errno
	case !id.hasConnection():
		return C.EINVAL
	case id.conn == nil || id.state != cmConnect:
		return 0
	}
	id.state = cmDisconnected
	conn := id.conn
	go func() {
		defer reportPanic()
		err := conn.Disconnect(context.Background(), nil)
		cmMu.Lock()
		defer cmMu.Unlock()
		status := 0
		if errors.Is(err, cm.ErrUnreachable) {
			status = -C.ETIMEDOUT
		}
		id.queueDisconnected(status)
	}()
	return 0
}

// notify handles rdma_notify(3): data arrived before the RTU.
func (c cmCommand) notify() C.int {
	r := readCommand[C.struct_rdma_ucm_notify](c)
	id, errno := c.findBound(r.id)
	switch {
	case errno != 0:
		return errno
	case id.conn == nil:
		return C.EINVAL
	case isEstablished(id.conn):
		return C.EISCONN
	}
	return errnoOf(id.conn.Establish(nil))
}

// paramsOfRequest sets the peer's parameters and addresses of a new id.
func (id *cmID) paramsOfRequest(r *cm.Request, l *cmID) {
	id.request, id.params, id.peer = r, r.Params, r.RemoteAdapter()
	id.qpType = r.Transport
	id.setAddresses(l, r.LocalAddr(), r.RemoteAddr())
	id.param = connParam{min(r.InitiatorDepth, 255), min(r.ResponderResources, 255), r.RetryCount}
}
