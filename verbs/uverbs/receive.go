//go:build linux

package uverbs

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// A receiveRing is the queue of receives of a queue pair or of a shared receive queue. The kernel
// finds the receives when a message arrives: posting needs no system call.
type receiveRing struct {
	mu     sync.Mutex
	ring   *ring // nil if closed
	maxWR  int
	maxSGE int
}

// postReceives posts receives and returns the number accepted.
func (q *receiveRing) postReceives(object fmt.Stringer, wrs []verbs.RecvWR) (int, error) {
	const op = "post receive"
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.ring
	if r == nil {
		return 0, closedError(op, object.String())
	}
	at := r.producer.Load()
	accepted := len(wrs)
	var err error
	for i := range wrs {
		list := wrs[i].SGList
		if r.isFull(at, q.maxWR) {
			err = &verbs.OpError{Op: op, Object: object.String(), Err: verbs.ErrQueueFull}
		} else if len(list) > q.maxSGE {
			err = limitError(op, object.String(), "number of SGEs", len(list), q.maxSGE)
		}
		if err != nil {
			accepted = i
			break
		}
		e := (*recvElement)(r.elementAt(at))
		*e = recvElement{id: wrs[i].WRID}
		e.data.length = storeList(unsafe.Add(unsafe.Pointer(e), unsafe.Sizeof(*e)), list)
		e.data.remaining, e.data.count = e.data.length, uint32(len(list))
		at = (at + 1) & r.mask
	}
	r.producer.Store(at)
	return accepted, err
}

// storeList stores scatter/gather elements behind the head of an element and returns the sum of
// their lengths.
func storeList(to unsafe.Pointer, list []verbs.SGE) (length uint32) {
	elements := unsafe.Slice((*verbs.SGE)(to), len(list)) // struct rxe_sge
	for i := range list {
		elements[i] = list[i]
		length += list[i].Length
	}
	return length
}

// unmapRing unmaps the queue.
func (q *receiveRing) unmapRing(f *commandFile) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_ = f.unmapQueue(q.ring)
	q.ring = nil
}
