package main

/*
#include <infiniband/verbs.h>
#include "rdmacm.h"
*/
import "C"

import (
	"cmp"
	"net/netip"
	"slices"
	"unsafe"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/verbs"
)

// Values of the path of a RoCE v2 connection.
const (
	hopLimit           = 64
	defaultAckTimeout  = 14 // code, 67 ms, as verbs.ConnectOptions
	minRNRTimer        = 12 // code, 0.64 ms, as verbs.ConnectOptions
	rate100Gbps        = 16 // enum ibv_rate
	exactly            = 2  // selector of a path record
	multicastQPN       = 0xffffff
	permissivePKey     = 0xffff
	packetLifetimeCode = 16 // 0.27 s, CMA_IBOE_PACKET_LIFETIME of the kernel
)

func (c cmCommand) queryRoute() C.int {
	r := readCommand[C.struct_rdma_ucm_query](c)
	id, errno := c.find(r.id)
	if errno != 0 {
		return errno
	}
	var q C.struct_rdma_ucm_query_route_resp
	storeSockaddr(&q.src_addr, id.src)
	storeSockaddr(&q.dst_addr, id.dst)
	if id.device != nil {
		q.node_guid = C.__u64(bigEndian64(id.device.QueryDevice().NodeGUID))
		q.port_num = 1
		q.ibdev_index = C.__u32(slices.Index(devices, id.device))
		id.storeRoute(&q)
	}
	return respond(c, r.response, &q)
}

// storeRoute stores the path of an id, or its GIDs before the route is resolved.
func (id *cmID) storeRoute(q *C.struct_rdma_ucm_query_route_resp) {
	p := &q.ib_route[0]
	setGID(unsafe.Pointer(&p.sgid), id.device.cmAddr())
	if id.dst.IsValid() {
		setGID(unsafe.Pointer(&p.dgid), id.dst.Addr())
	}
	p.pkey = permissivePKey
	if id.state < cmRouteResolved || id.state == cmListen || !id.dst.IsValid() {
		return
	}
	q.num_paths = 1
	p.reversible, p.numb_path, p.hop_limit, p.traffic_class = 1, 1, hopLimit, C.__u8(id.trafficClass)
	p.mtu, p.mtu_selector = C.__u32(id.pathMTU()), exactly
	p.rate, p.rate_selector = rate100Gbps, exactly
	p.packet_life_time, p.packet_life_time_selector = packetLifetimeCode, exactly
}

// pathMTU returns the MTU of the path to the peer.
func (id *cmID) pathMTU() verbs.MTU {
	if id.params.MTU != 0 {
		return id.params.MTU
	}
	mtu := verbs.MTU1024
	if port, err := id.device.QueryPort(1); err == nil {
		mtu = port.ActiveMTU
	}
	return adapter.FitPathMTU(id.device.Device, verbs.AHAttr{DGID: verbs.GIDFromAddr(id.dst.Addr()), PortNum: 1}, mtu)
}

func setGID(gid unsafe.Pointer, a netip.Addr) { *(*verbs.GID)(gid) = verbs.GIDFromAddr(a) }

// initQPAttr stores the attributes for rdma_init_qp_attr(3), from the id's addresses and from the
// messages exchanged so far.
func (c cmCommand) initQPAttr() C.int {
	r := readCommand[C.struct_rdma_ucm_init_qp_attr](c)
	if r.qp_state > C.IBV_QPS_ERR {
		return C.EINVAL
	}
	id, errno := c.findBound(r.id)
	if errno != 0 {
		return errno
	}
	var a C.struct_ib_uverbs_qp_attr
	a.qp_state = r.qp_state
	switch {
	case !id.hasConnection() || id.isDatagram():
		id.initAttr(&a)
	case r.qp_state == C.IBV_QPS_INIT:
		id.initConnAttr(&a)
	case r.qp_state == C.IBV_QPS_RTR && id.params.QPN != 0:
		id.rtrAttr(&a)
	case r.qp_state == C.IBV_QPS_RTS && id.params.QPN != 0:
		id.rtsAttr(&a)
	default:
		return C.EINVAL
	}
	return respond(c, r.response, &a)
}

// initAttr sets the attributes of a queue pair before the connection is requested.
func (id *cmID) initAttr(a *C.struct_ib_uverbs_qp_attr) {
	a.port_num = 1
	a.qp_attr_mask = C.IBV_QP_STATE | C.IBV_QP_PKEY_INDEX | C.IBV_QP_PORT
	if id.isDatagram() {
		a.qkey = C.__u32(cmp.Or(id.qkey, cm.UDQKey))
		a.qp_attr_mask |= C.IBV_QP_QKEY
	} else {
		a.qp_attr_mask |= C.IBV_QP_ACCESS_FLAGS
	}
}

// initConnAttr sets the attributes of a connected queue pair in INIT.
func (id *cmID) initConnAttr(a *C.struct_ib_uverbs_qp_attr) {
	a.port_num = 1
	a.qp_attr_mask = C.IBV_QP_STATE | C.IBV_QP_PKEY_INDEX | C.IBV_QP_PORT | C.IBV_QP_ACCESS_FLAGS
	a.qp_access_flags = C.IBV_ACCESS_REMOTE_WRITE
	if id.servedReads() > 0 && id.qpType == verbs.RC {
		a.qp_access_flags |= C.IBV_ACCESS_REMOTE_READ | C.IBV_ACCESS_REMOTE_ATOMIC
	}
}

// servedReads returns the number of reads and atomics that the local side serves at a time.
func (id *cmID) servedReads() uint8 {
	if id.params.QPN == 0 {
		return id.param.responderResources
	}
	return min(id.params.InitiatorDepth, uint8(min(id.device.QueryDevice().MaxQPRdAtom, 255)))
}

func (id *cmID) rtrAttr(a *C.struct_ib_uverbs_qp_attr) {
	p := &id.params
	a.qp_attr_mask = C.IBV_QP_STATE | C.IBV_QP_AV | C.IBV_QP_PATH_MTU | C.IBV_QP_DEST_QPN | C.IBV_QP_RQ_PSN
	storeAH(&a.ah_attr, verbs.AHAttr{
		DGID: verbs.GIDFromAddr(id.peer.Addr()), FlowLabel: p.FlowLabel, TrafficClass: p.TrafficClass, HopLimit: p.HopLimit, SL: p.SL,
	})
	a.path_mtu, a.dest_qp_num, a.rq_psn = C.__u32(p.MTU), C.__u32(p.QPN), C.__u32(id.psn)
	if id.qpType == verbs.RC {
		a.qp_attr_mask |= C.IBV_QP_MAX_DEST_RD_ATOMIC | C.IBV_QP_MIN_RNR_TIMER
		a.max_dest_rd_atomic, a.min_rnr_timer = C.__u8(id.servedReads()), minRNRTimer
	}
}

func (id *cmID) rtsAttr(a *C.struct_ib_uverbs_qp_attr) {
	p := &id.params
	a.qp_attr_mask = C.IBV_QP_STATE | C.IBV_QP_SQ_PSN
	a.sq_psn = C.__u32(p.PSN)
	if id.qpType != verbs.RC {
		return
	}
	a.qp_attr_mask |= C.IBV_QP_TIMEOUT | C.IBV_QP_RETRY_CNT | C.IBV_QP_RNR_RETRY | C.IBV_QP_MAX_QP_RD_ATOMIC
	a.rnr_retry = C.__u8(p.RNRRetry)
	a.max_rd_atomic = C.__u8(min(p.ResponderResources, uint8(min(id.device.QueryDevice().MaxQPInitRdAtom, 255))))
	if id.request != nil {
		a.timeout, a.retry_cnt = C.__u8(timeoutCode(p.AckTimeout)), C.__u8(p.RetryCount)
		return
	}
	a.timeout, a.retry_cnt = C.__u8(id.ackTimeoutCode()), C.__u8(id.param.retries)
	if p.PeerBuffer == 0 { // not a softrnic: its delay counts, too
		a.timeout = C.__u8(timeoutCode(verbs.AckTimeout(id.ackTimeoutCode()) + p.AckDelay))
	}
}

// ackTimeoutCode returns the local ACK timeout of the id.
func (id *cmID) ackTimeoutCode() uint8 { return cmp.Or(id.ackTimeout, defaultAckTimeout) }

// storeAH stores an address vector of RoCE v2 in the form of the kernel.
func storeAH(to *C.struct_ib_uverbs_ah_attr, a verbs.AHAttr) {
	*(*verbs.GID)(unsafe.Pointer(&to.grh.dgid)) = a.DGID
	to.grh.flow_label, to.grh.hop_limit = C.__u32(a.FlowLabel), C.__u8(cmp.Or(a.HopLimit, hopLimit))
	to.grh.traffic_class = C.__u8(a.TrafficClass)
	to.sl, to.is_global, to.port_num = C.__u8(a.SL), 1, 1
}
