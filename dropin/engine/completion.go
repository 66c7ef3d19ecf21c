package main

/*
#include "engine.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"github.com/softrnic/softrnic/internal/place"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/verbs"
)

// envExplain makes the engine print the story of each failed completion.
const envExplain = "SOFTRNIC_EXPLAIN"

var explain = os.Getenv(envExplain) != "" && os.Getenv(envExplain) != "0"

// A channel is a completion channel whose events go to a C structure.
type channel struct {
	verbs.CompChannel
	bell verbs.CQ // its Wait ends with an event of the channel
}

// Close frees the channel and its bell.
func (c *channel) Close() error {
	if err := c.CompChannel.Close(); err != nil {
		return err
	}
	return c.bell.Close()
}

//export go_create_channel
func go_create_channel(ctx C.uint32_t, c unsafe.Pointer, handle *C.uint32_t) C.int {
	defer reportPanic()
	dc, errno := contextOf(ctx)
	if errno != 0 {
		return errno
	}
	ch, err := dc.device.CreateCompChannel()
	if err != nil {
		return errnoOf(err)
	}
	bell, err := dc.device.CreateCQ(1)
	if err != nil {
		ch.Close() //nolint:errcheck // it has no queues
		return errnoOf(err)
	}
	rnichook.NotifyChannel(ch, func(cq any) {
		owners.use(cq, func(o owner) { C.raise_completion(c, o.c) })
		rnichook.RaiseEvent(bell)
	})
	return addObject(dc, &channel{ch, bell}, handle)
}

// leadTime is the time for which a thread in ibv_get_cq_event drives the device itself, before it
// blocks in its descriptor. There a signal handler of the program interrupts it, as in rdma-core, and
// the service of the device handles its packets.
const leadTime = 2 * time.Millisecond

// go_lead_for_event drives the device until the channel has an event, for leadTime at most. The
// packet that it waits for wakes the thread itself, without another thread between them.
//
//export go_lead_for_event
func go_lead_for_event(handle C.uint32_t) {
	defer reportPanic()
	if ch, ok := lookup[*channel](handle); ok {
		ctx, cancel := context.WithTimeout(context.Background(), leadTime)
		defer cancel()
		ch.bell.Wait(ctx) //nolint:errcheck // the caller looks at its list of events
	}
}

// A completionQueue is a completion queue with room to convert completions.
type completionQueue struct {
	verbs.CQ
	clock func() int64 // of the device
	mu    sync.Mutex
	wc    [32]verbs.WC
}

// Close frees the queue, after which no event of it is raised.
func (q *completionQueue) Close() error {
	if err := q.CQ.Close(); err != nil {
		return err
	}
	owners.remove(q.CQ)
	return nil
}

//export go_create_cq
func go_create_cq(ctx, ch C.uint32_t, c unsafe.Pointer, handle *C.uint32_t, depth *C.int) C.int {
	defer reportPanic()
	dc, errno := contextOf(ctx)
	if errno != 0 {
		return errno
	}
	create := dc.device.CreateCQ
	if ch != 0 {
		channel, ok := lookup[*channel](ch)
		if !ok {
			return errnoOf(errStale)
		}
		create = channel.CreateCQ
	}
	cq, err := create(int(*depth))
	if err != nil {
		return errnoOf(err)
	}
	*depth = C.int(cq.Depth())
	owners.add(cq, owner{c: c, context: dc.c})
	return addObject(dc, &completionQueue{CQ: cq, clock: dc.device.QueryClock}, handle)
}

//export go_resize_cq
func go_resize_cq(handle C.uint32_t, depth *C.int) C.int {
	defer reportPanic()
	q, ok := lookup[*completionQueue](handle)
	if !ok {
		return errnoOf(errStale)
	}
	err := q.Resize(int(*depth))
	*depth = C.int(q.Depth())
	return errnoOf(err)
}

//export go_req_notify
func go_req_notify(handle C.uint32_t, solicitedOnly C.int) C.int {
	defer reportPanic()
	q, ok := lookup[*completionQueue](handle)
	if !ok {
		return errnoOf(errStale)
	}
	return errnoOf(q.ReqNotify(solicitedOnly != 0))
}

// A completion is struct ibv_wc: 48 bytes. Field imm is the union of immediate data in network
// byte order and the invalidated key.
type completion struct {
	id                                                         uint64
	status, opcode, vendorErr, byteLen, imm, qpn, srcQP, flags uint32
	pkeyIndex, slid                                            uint16
	sl, dlidPathBits                                           uint8
	_                                                          [2]byte
}

const _ = uint(unsafe.Sizeof(completion{})-C.sizeof_struct_ibv_wc) + uint(C.sizeof_struct_ibv_wc-unsafe.Sizeof(completion{}))

// go_poll_cq returns the number of completions, or a negative errno.
//
//export go_poll_cq
func go_poll_cq(handle C.uint32_t, count C.int, wc unsafe.Pointer) C.int {
	defer reportPanic()
	if !isProgramRange(uintptr(wc), uint64(count)*C.sizeof_struct_ibv_wc) {
		return -C.EFAULT
	}
	q, ok := lookup[*completionQueue](handle)
	if !ok {
		return -errnoOf(errStale)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pollInto(unsafe.Slice((*completion)(wc), int(count)))
}

// pollInto moves completions to out and returns their number, or a negative errno. q.mu is held.
func (q *completionQueue) pollInto(out []completion) C.int {
	polled := 0
	for polled < len(out) {
		want := min(len(out)-polled, len(q.wc))
		n, err := q.Poll(q.wc[:want])
		mapped := place.Try(func() {
			for i := range q.wc[:n] {
				out[polled].convert(&q.wc[i])
				polled++
			}
		})
		if !mapped {
			return -C.EFAULT
		}
		if err != nil && polled == 0 {
			if errors.Is(err, verbs.ErrCQOverrun) {
				return -C.EOVERFLOW
			}
			return -errnoOf(err)
		}
		if n < want || q.Len() == 0 {
			break
		}
	}
	return C.int(polled)
}

// go_record_times makes the completions of a queue have times.
//
//export go_record_times
func go_record_times(handle C.uint32_t) {
	defer reportPanic()
	if q, ok := lookup[*completionQueue](handle); ok {
		q.RecordTimes(true)
	}
}

// go_poll_timed_cq polls one completion with its times. It returns 1, 0 or a negative errno.
//
//export go_poll_timed_cq
func go_poll_timed_cq(handle C.uint32_t, wc unsafe.Pointer, times *C.struct_completion_times) C.int {
	defer reportPanic()
	q, ok := lookup[*completionQueue](handle)
	if !ok {
		return -errnoOf(errStale)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.pollInto(unsafe.Slice((*completion)(wc), 1))
	if n == 1 {
		at := q.wc[0].Time
		times.device = C.uint64_t(at)
		times.wall = C.uint64_t(time.Now().UnixNano() - (q.clock() - at))
	}
	return n
}

//export go_query_clock
func go_query_clock(handle C.uint32_t, now *C.uint64_t) C.int {
	defer reportPanic()
	c, errno := contextOf(handle)
	if errno != 0 {
		return errno
	}
	*now = C.uint64_t(c.device.QueryClock())
	return 0
}

// convert fills in the completion of libibverbs.
func (c *completion) convert(wc *verbs.WC) {
	if wc.Status != verbs.WCSuccess && explain {
		fmt.Fprintf(os.Stderr, "softrnic[%d]: %v\n", os.Getpid(), wc.Err())
	}
	imm := uint32(0)
	switch {
	case wc.Flags&verbs.WCWithImm != 0:
		imm = bigEndian32(wc.Imm)
	case wc.Flags&verbs.WCWithInv != 0:
		imm = wc.InvKey
	}
	*c = completion{
		id: wc.WRID, status: uint32(wc.Status), opcode: uint32(wc.Opcode), vendorErr: wc.VendorErr, byteLen: wc.ByteLen,
		imm: imm, qpn: wc.QPN, srcQP: wc.SrcQPN, flags: uint32(wc.Flags),
	}
}
