package main

/*
#include "engine.h"
*/
import "C"

import (
	"errors"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/verbs"
)

// sendFlags are the flags of libibverbs that have the same meaning here. IBV_SEND_IP_CSUM is
// for raw packets.
const sendFlags = verbs.SendFence | verbs.SendSignaled | verbs.SendSolicited | verbs.SendInline

// touched keeps the compiler from removing the accesses of elements.
var touched atomic.Uint32

// elements returns a scatter/gather list of the program, of at most limit elements: struct ibv_sge has the
// layout of verbs.SGE. It reads the first and the last one, so that a list that is not mapped faults here
// and not with the locks of the device held.
func elements(sges unsafe.Pointer, n C.uint32_t, limit int) ([]verbs.SGE, C.int) {
	switch {
	case n == 0:
		return nil, 0
	case int64(n) > int64(limit) || !isProgramRange(uintptr(sges), uint64(n)*C.sizeof_struct_ibv_sge):
		return nil, C.EINVAL
	}
	list := unsafe.Slice((*verbs.SGE)(sges), int(n))
	touched.Store(list[0].Length + list[n-1].Length)
	return list, 0
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
	wrs, refused := q.convertSends(unsafe.Slice(requests, int(count)))
	n, err := q.PostSend(wrs)
	*done = C.int(n)
	if err != nil {
		return postErrno(err)
	}
	return refused
}

// go_post_all posts all requests of an ibv_wr_start, or none.
//
//export go_post_all
func go_post_all(handle C.uint32_t, requests *C.struct_send_request, count C.uint32_t) C.int {
	defer reportPanic()
	q, errno := queuePairOf(handle)
	if errno != 0 {
		return errno
	}
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	wrs, refused := q.convertSends(unsafe.Slice(requests, int(count)))
	if refused != 0 {
		return refused
	}
	return postErrno(rnichook.PostSendAll(q.QP, wrs))
}

func postErrno(err error) C.int {
	if errors.Is(err, verbs.ErrUnsupported) {
		return C.EINVAL // as drivers answer an opcode that is unknown, or of other types of queue pairs
	}
	return errnoOf(err)
}

// convertSends converts the requests before the first whose data cannot be described, and returns the
// errno of that one.
func (q *queuePair) convertSends(in []C.struct_send_request) ([]verbs.SendWR, C.int) {
	for len(q.sends) < len(in) {
		q.sends, q.inline = append(q.sends, verbs.SendWR{}), append(q.inline, nil)
	}
	n, errno := 0, C.int(0)
	mapped := place.Try(func() {
		for n < len(in) {
			if errno = q.convert(n, &in[n]); errno != 0 {
				return
			}
			n++
		}
	})
	if !mapped {
		errno = C.EFAULT
	}
	return q.sends[:n], errno
}

// convert stores request i of a batch.
func (q *queuePair) convert(i int, r *C.struct_send_request) C.int {
	wr := &q.sends[i]
	*wr = verbs.SendWR{
		WRID: uint64(r.wr_id), Opcode: verbs.WROpcode(min(r.opcode, 255)), Flags: verbs.SendFlags(r.flags) & sendFlags,
		Imm: uint32(r.imm), InvKey: uint32(r.inv_rkey), RemoteAddr: uint64(r.remote_addr), RKey: uint32(r.rkey),
		CompareAdd: uint64(r.compare_add), Swap: uint64(r.swap), RemoteQPN: uint32(r.remote_qpn), RemoteQKey: uint32(r.remote_qkey),
	}
	if r.ah != 0 {
		wr.AH, _ = lookup[verbs.AH](r.ah)
	}
	switch wr.Opcode {
	case verbs.WRBindMW:
		wr.Bind = bindOf(r)
	case verbs.WRFlush:
		wr.Flush = verbs.Flush{Placement: verbs.FlushPlacement(r.flush_placement), Selectivity: verbs.FlushSelectivity(r.flush_selectivity),
			Length: uint32(r.flush_length)}
	}
	list, errno := elements(r.sges, r.nsge, q.sizes.MaxSendSGE)
	if errno != 0 || wr.Flags&verbs.SendInline == 0 {
		wr.SGList = list
		return errno
	}
	total := uint64(0)
	for _, s := range list {
		if total += uint64(s.Length); total > uint64(q.sizes.MaxInlineData) {
			return C.EINVAL
		}
		if !isProgramRange(uintptr(s.Addr), uint64(s.Length)) {
			return C.EFAULT
		}
	}
	if len(list) == 1 {
		wr.InlineData = programMemory(list[0])
		return 0
	}
	data := q.inline[i][:0]
	for _, s := range list {
		data = append(data, programMemory(s)...)
	}
	q.inline[i], wr.InlineData = data, data
	return 0
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

// isProgramRange reports whether memory of the program can have this address and length in bytes. It may
// still not be mapped.
func isProgramRange(addr uintptr, length uint64) bool {
	const firstPage = 4096 // never mapped
	return length == 0 || addr >= firstPage && length <= math.MaxInt64 && uint64(addr) <= math.MaxUint64-length
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
	return postReceives(q.PostRecv, q.recvs[:], requests, count, q.sizes.MaxRecvSGE, done)
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
	return postReceives(s.PostRecv, s.recvs[:], requests, count, s.maxSGE, done)
}

// postReceives converts requests to wrs and posts those before the first whose list is longer than maxSGE
// elements or cannot be read. It stores their number.
func postReceives(post func([]verbs.RecvWR) (int, error), wrs []verbs.RecvWR, requests *C.struct_recv_request, count C.int, maxSGE int,
	done *C.int) (refused C.int) {
	in, converted := unsafe.Slice(requests, int(count)), 0
	mapped := place.Try(func() {
		for converted < len(in) {
			r := &in[converted]
			var list []verbs.SGE
			if list, refused = elements(r.sges, r.nsge, maxSGE); refused != 0 {
				return
			}
			wrs[converted] = verbs.RecvWR{WRID: uint64(r.wr_id), SGList: list}
			converted++
		}
	})
	if !mapped {
		refused = C.EFAULT
	}
	n, err := post(wrs[:converted])
	*done = C.int(n)
	if err != nil {
		return errnoOf(err)
	}
	return refused
}
