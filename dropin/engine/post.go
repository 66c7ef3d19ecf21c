package main

/*
#include "engine.h"
*/
import "C"

import (
	"errors"
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// sendFlags are the flags of libibverbs that have the same meaning here. IBV_SEND_IP_CSUM is
// for raw packets.
const sendFlags = verbs.SendFence | verbs.SendSignaled | verbs.SendSolicited | verbs.SendInline

// tooMany stands for a list that cannot be read, so that the request is refused.
var tooMany = make([]verbs.SGE, 1024)

// elements returns a scatter/gather list of the program: struct ibv_sge has the layout of verbs.SGE.
func elements(sges unsafe.Pointer, n C.uint32_t) []verbs.SGE {
	if n == 0 {
		return nil
	}
	if sges == nil || int(n) > len(tooMany) {
		return tooMany
	}
	return unsafe.Slice((*verbs.SGE)(sges), int(n))
}

const _ = uint(unsafe.Sizeof(verbs.SGE{})-C.sizeof_struct_ibv_sge) + uint(C.sizeof_struct_ibv_sge-unsafe.Sizeof(verbs.SGE{}))

//export go_post_send
func go_post_send(handle C.uint32_t, requests *C.struct_send_request, count C.int, done *C.int) C.int {
	defer reportPanic()
	q, errno := queuePairOf(handle)
	if errno != 0 {
		return errno
	}
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	in := unsafe.Slice(requests, int(count))
	for i := range in {
		q.convert(i, &in[i])
	}
	n, err := q.PostSend(q.sends[:len(in)])
	*done = C.int(n)
	if errors.Is(err, verbs.ErrUnsupported) {
		return C.EINVAL // as drivers answer an opcode that is unknown, or of other types of queue pairs
	}
	return errnoOf(err)
}

// go_post_all posts all requests of an ibv_wr_start.
//
//export go_post_all
func go_post_all(handle C.uint32_t, requests *C.struct_send_request, count C.uint32_t) C.int {
	defer reportPanic()
	for left := unsafe.Slice(requests, int(count)); len(left) > 0; {
		n, done := min(len(left), C.BATCH), C.int(0)
		if errno := go_post_send(handle, &left[0], C.int(n), &done); errno != 0 {
			return errno
		}
		left = left[n:]
	}
	return 0
}

// convert stores request i of a batch.
func (q *queuePair) convert(i int, r *C.struct_send_request) {
	wr := &q.sends[i]
	*wr = verbs.SendWR{
		WRID: uint64(r.wr_id), Opcode: verbs.WROpcode(min(r.opcode, 255)), Flags: verbs.SendFlags(r.flags) & sendFlags,
		Imm: uint32(r.imm), InvKey: uint32(r.inv_rkey), RemoteAddr: uint64(r.remote_addr), RKey: uint32(r.rkey),
		CompareAdd: uint64(r.compare_add), Swap: uint64(r.swap), RemoteQPN: uint32(r.remote_qpn), RemoteQKey: uint32(r.remote_qkey),
	}
	if r.ah != 0 {
		wr.AH, _ = lookup[verbs.AH](r.ah)
	}
	if wr.Opcode == verbs.WRBindMW {
		wr.Bind = bindOf(r)
	}
	list := elements(r.sges, r.nsge)
	switch {
	case wr.Flags&verbs.SendInline == 0:
		wr.SGList = list
	case len(list) == len(tooMany):
		wr.SGList, wr.Flags = list, wr.Flags&^verbs.SendInline
	case len(list) == 1:
		wr.InlineData = programMemory(list[0])
	default:
		data := q.inline[i][:0]
		for _, s := range list {
			data = append(data, programMemory(s)...)
		}
		q.inline[i], wr.InlineData = data, data
	}
}

// bindOf returns the binding of a BIND_MW request. A window grants remote access only, so that
// IBV_ACCESS_LOCAL_WRITE, which programs pass along, changes nothing.
func bindOf(r *C.struct_send_request) verbs.BindMW {
	b := verbs.BindMW{RKey: uint32(r.bind_rkey), Addr: uint64(r.bind_addr), Length: uint64(r.bind_length), Access: verbs.AccessFlags(r.bind_access) &^ verbs.AccessLocalWrite}
	b.MW, _ = lookup[verbs.MW](r.mw)
	if mr, ok := lookup[*region](r.mr); ok {
		b.MR = mr.MR
	}
	return b
}

// programMemory returns inline data, which an element names by its address without a key.
func programMemory(s verbs.SGE) []byte {
	if s.Length == 0 {
		return nil
	}
	addr := uintptr(s.Addr)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), int(s.Length))
}

//export go_post_recv
func go_post_recv(handle C.uint32_t, requests *C.struct_recv_request, count C.int, done *C.int) C.int {
	defer reportPanic()
	q, errno := queuePairOf(handle)
	if errno != 0 {
		return errno
	}
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	n, err := q.PostRecv(convertReceives(q.recvs[:], requests, count))
	*done = C.int(n)
	return errnoOf(err)
}

//export go_post_srq_recv
func go_post_srq_recv(handle C.uint32_t, requests *C.struct_recv_request, count C.int, done *C.int) C.int {
	defer reportPanic()
	s, errno := sharedReceiveQueueOf(handle)
	if errno != 0 {
		return errno
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.PostRecv(convertReceives(s.recvs[:], requests, count))
	*done = C.int(n)
	return errnoOf(err)
}

func convertReceives(wrs []verbs.RecvWR, requests *C.struct_recv_request, count C.int) []verbs.RecvWR {
	in := unsafe.Slice(requests, int(count))
	for i := range in {
		wrs[i] = verbs.RecvWR{WRID: uint64(in[i].wr_id), SGList: elements(in[i].sges, in[i].nsge)}
	}
	return wrs[:len(in)]
}
