package main

/*
#include "engine.h"
*/
import "C"

import (
	"sync"
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// A queuePair is a queue pair with room to convert work requests.
type queuePair struct {
	verbs.QP

	sizes verbs.QPCap

	sendMu sync.Mutex
	sends  []verbs.SendWR // grows to the largest batch
	inline [][]byte       // data of requests with several elements

	recvMu sync.Mutex
	recvs  [C.BATCH]verbs.RecvWR
}

// Close frees the queue pair, after which no event of it is raised.
func (q *queuePair) Close() error {
	if err := q.QP.Close(); err != nil {
		return err
	}
	owners.remove(q.QP)
	return nil
}

func queuePairOf(handle C.uint32_t) (*queuePair, C.int) {
	if q, ok := lookup[*queuePair](handle); ok {
		return q, 0
	}
	return nil, errnoOf(errStale)
}

//export go_create_qp
func go_create_qp(pd, kind, sendCQ, recvCQ, srq C.uint32_t, signalAll C.int, sizes *C.struct_ibv_qp_cap, c unsafe.Pointer,
	handle, number *C.uint32_t) C.int {
	defer reportPanic()
	d, errno := domainOf(pd)
	if errno != 0 {
		return errno
	}
	switch verbs.QPType(kind) {
	case verbs.RC, verbs.UC, verbs.UD:
	default:
		return C.EOPNOTSUPP // XRC, raw packets, drivers' own
	}
	send, ok := lookup[*completionQueue](sendCQ)
	recv, ok2 := lookup[*completionQueue](recvCQ)
	if !ok || !ok2 {
		return errnoOf(errStale)
	}
	attr := verbs.QPInitAttr{
		Type: verbs.QPType(kind), SendCQ: send.CQ, RecvCQ: recv.CQ, SelectiveSignaling: signalAll == 0,
		Cap: verbs.QPCap{
			MaxSendWR: int(sizes.max_send_wr), MaxRecvWR: int(sizes.max_recv_wr),
			MaxSendSGE: int(sizes.max_send_sge), MaxRecvSGE: int(sizes.max_recv_sge), MaxInlineData: int(sizes.max_inline_data),
		},
	}
	if srq != 0 {
		s, ok := lookup[*sharedReceiveQueue](srq)
		if !ok {
			return errnoOf(errStale)
		}
		attr.SRQ = s.SRQ
	}
	qp, err := d.CreateQP(attr)
	if err != nil {
		return errnoOf(err)
	}
	_, got := qp.Query()
	storeSizes(sizes, got.Cap)
	*number = C.uint32_t(qp.Num())
	owners.add(qp, owner{c: c, context: d.context.c})
	return addObject(d.context, &queuePair{QP: qp, sizes: got.Cap}, handle)
}

func storeSizes(sizes *C.struct_ibv_qp_cap, c verbs.QPCap) {
	sizes.max_send_wr, sizes.max_recv_wr = C.uint32_t(c.MaxSendWR), C.uint32_t(c.MaxRecvWR)
	sizes.max_send_sge, sizes.max_recv_sge = C.uint32_t(c.MaxSendSGE), C.uint32_t(c.MaxRecvSGE)
	sizes.max_inline_data = C.uint32_t(c.MaxInlineData)
}

//export go_modify_qp
func go_modify_qp(handle C.uint32_t, a *C.struct_ibv_qp_attr, mask C.int) C.int {
	defer reportPanic()
	q, errno := queuePairOf(handle)
	if errno != 0 {
		return errno
	}
	return errnoOf(q.Modify(verbs.QPAttr{
		State: verbs.QPState(a.qp_state), CurState: verbs.QPState(a.cur_qp_state), PathMTU: verbs.MTU(a.path_mtu),
		QKey: uint32(a.qkey), RQPSN: uint32(a.rq_psn), SQPSN: uint32(a.sq_psn), DestQPN: uint32(a.dest_qp_num),
		AccessFlags: verbs.AccessFlags(a.qp_access_flags), AV: addressOf(&a.ah_attr), PKeyIndex: uint16(a.pkey_index),
		EnSQDAsyncNotify: a.en_sqd_async_notify != 0, MaxRdAtomic: uint8(a.max_rd_atomic), MaxDestRdAtomic: uint8(a.max_dest_rd_atomic),
		MinRNRTimer: uint8(a.min_rnr_timer), PortNum: uint8(a.port_num), Timeout: uint8(a.timeout), RetryCnt: uint8(a.retry_cnt),
		RNRRetry: uint8(a.rnr_retry),
	}, verbs.QPAttrMask(mask)))
}

//export go_query_qp
func go_query_qp(handle C.uint32_t, a *C.struct_ibv_qp_attr, signalAll *C.int) C.int {
	defer reportPanic()
	q, errno := queuePairOf(handle)
	if errno != 0 {
		return errno
	}
	attr, init := q.Query()
	a.qp_state, a.cur_qp_state, a.path_mtu = uint32(attr.State), uint32(attr.State), uint32(attr.PathMTU)
	a.qkey, a.rq_psn, a.sq_psn = C.uint32_t(attr.QKey), C.uint32_t(attr.RQPSN), C.uint32_t(attr.SQPSN)
	a.dest_qp_num, a.qp_access_flags = C.uint32_t(attr.DestQPN), C.uint(attr.AccessFlags)
	a.pkey_index, a.port_num = C.uint16_t(attr.PKeyIndex), C.uint8_t(attr.PortNum)
	a.max_rd_atomic, a.max_dest_rd_atomic = C.uint8_t(attr.MaxRdAtomic), C.uint8_t(attr.MaxDestRdAtomic)
	a.min_rnr_timer, a.timeout = C.uint8_t(attr.MinRNRTimer), C.uint8_t(attr.Timeout)
	a.retry_cnt, a.rnr_retry = C.uint8_t(attr.RetryCnt), C.uint8_t(attr.RNRRetry)
	if attr.SQDraining {
		a.sq_draining = 1
	}
	ah := &a.ah_attr
	*(*verbs.GID)(unsafe.Pointer(&ah.grh.dgid)) = attr.AV.DGID
	ah.grh.flow_label, ah.grh.sgid_index = C.uint32_t(attr.AV.FlowLabel), C.uint8_t(attr.AV.SGIDIndex)
	ah.grh.hop_limit, ah.grh.traffic_class = C.uint8_t(attr.AV.HopLimit), C.uint8_t(attr.AV.TrafficClass)
	ah.sl, ah.port_num = C.uint8_t(attr.AV.SL), C.uint8_t(attr.AV.PortNum)
	if attr.AV.DGID != (verbs.GID{}) {
		ah.is_global = 1
	}
	storeSizes(&a.cap, init.Cap)
	if !init.SelectiveSignaling {
		*signalAll = 1
	}
	return 0
}

//export go_attach_mcast
func go_attach_mcast(handle C.uint32_t, gid unsafe.Pointer, attach C.int) C.int {
	defer reportPanic()
	q, errno := queuePairOf(handle)
	if errno != 0 {
		return errno
	}
	if attach != 0 {
		return errnoOf(q.AttachMcast(*(*verbs.GID)(gid)))
	}
	return errnoOf(q.DetachMcast(*(*verbs.GID)(gid)))
}

// A sharedReceiveQueue is a shared receive queue with room to convert work requests.
type sharedReceiveQueue struct {
	verbs.SRQ
	maxSGE int
	mu     sync.Mutex
	recvs  [C.BATCH]verbs.RecvWR
}

// Close frees the queue, after which no event of it is raised.
func (s *sharedReceiveQueue) Close() error {
	if err := s.SRQ.Close(); err != nil {
		return err
	}
	owners.remove(s.SRQ)
	return nil
}

//export go_create_srq
func go_create_srq(pd C.uint32_t, a *C.struct_ibv_srq_attr, c unsafe.Pointer, handle *C.uint32_t) C.int {
	defer reportPanic()
	d, errno := domainOf(pd)
	if errno != 0 {
		return errno
	}
	srq, err := d.CreateSRQ(verbs.SRQInitAttr{MaxWR: int(a.max_wr), MaxSGE: int(a.max_sge), Limit: int(a.srq_limit)})
	if err != nil {
		return errnoOf(err)
	}
	if q, err := srq.Query(); err == nil {
		a.max_wr, a.max_sge = C.uint32_t(q.MaxWR), C.uint32_t(q.MaxSGE)
	}
	owners.add(srq, owner{c: c, context: d.context.c})
	return addObject(d.context, &sharedReceiveQueue{SRQ: srq, maxSGE: int(a.max_sge)}, handle)
}

func sharedReceiveQueueOf(handle C.uint32_t) (*sharedReceiveQueue, C.int) {
	if s, ok := lookup[*sharedReceiveQueue](handle); ok {
		return s, 0
	}
	return nil, errnoOf(errStale)
}

//export go_query_srq
func go_query_srq(handle C.uint32_t, a *C.struct_ibv_srq_attr) C.int {
	defer reportPanic()
	s, errno := sharedReceiveQueueOf(handle)
	if errno != 0 {
		return errno
	}
	q, err := s.Query()
	a.max_wr, a.max_sge, a.srq_limit = C.uint32_t(q.MaxWR), C.uint32_t(q.MaxSGE), C.uint32_t(q.Limit)
	return errnoOf(err)
}

//export go_modify_srq
func go_modify_srq(handle C.uint32_t, a *C.struct_ibv_srq_attr, mask C.int) C.int {
	defer reportPanic()
	s, errno := sharedReceiveQueueOf(handle)
	if errno != 0 {
		return errno
	}
	return errnoOf(s.Modify(verbs.SRQAttr{MaxWR: int(a.max_wr), Limit: int(a.srq_limit)}, verbs.SRQAttrMask(mask)))
}
