package uverbs

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// A ring is a queue of rxe that kernel and process both map (struct rxe_queue_buf of
// rdma/rdma_user_rxe.h): a header, the indices of producer and consumer in lines of their own, and
// elements of equal size. One of the two sides produces, the other consumes. An index is stored
// after the elements that it covers and loaded before them, for which Go's atomics are sufficient.
type ring struct {
	memory             []byte
	elements           unsafe.Pointer
	producer, consumer *atomic.Uint32
	shift, mask        uint32 // log2 of the bytes of an element; elements less 1, a power of two less 1
}

// Offsets in struct rxe_queue_buf.
const (
	ringShift    = 0
	ringMask     = 4
	ringProducer = 128
	ringConsumer = 256
	ringElements = 384
)

// newRing returns the ring in mapped memory.
func newRing(memory []byte) (*ring, error) {
	if len(memory) < ringElements {
		return nil, fmt.Errorf("queue of %d bytes: want at least %d", len(memory), ringElements)
	}
	r := &ring{
		memory:   memory,
		elements: unsafe.Pointer(unsafe.SliceData(memory[ringElements-1:][1:])),
		producer: (*atomic.Uint32)(unsafe.Pointer(&memory[ringProducer])),
		consumer: (*atomic.Uint32)(unsafe.Pointer(&memory[ringConsumer])),
		shift:    *(*uint32)(unsafe.Pointer(&memory[ringShift])),
		mask:     *(*uint32)(unsafe.Pointer(&memory[ringMask])),
	}
	if elements := uint64(r.mask) + 1; r.shift > 16 || elements&(elements-1) != 0 || elements<<r.shift > uint64(len(memory)-ringElements) {
		return nil, fmt.Errorf("queue of %d bytes: invalid header: %d elements of 2^%d bytes", len(memory), elements, r.shift)
	}
	return r, nil
}

// elementAt returns the element with an index, which may be beyond the mask.
func (r *ring) elementAt(index uint32) unsafe.Pointer {
	return unsafe.Add(r.elements, uintptr(index&r.mask)<<r.shift)
}

// elementSize returns the bytes of an element.
func (r *ring) elementSize() int { return 1 << r.shift }

// countUsed returns the number of elements between the indices.
func (r *ring) countUsed() int {
	return int((r.producer.Load() - r.consumer.Load()) & r.mask)
}

// isFull reports whether an element cannot be produced at index: the ring has more places than limit,
// the number of elements that the program has asked for.
func (r *ring) isFull(index uint32, limit int) bool {
	return int((index-r.consumer.Load())&r.mask) >= min(limit, int(r.mask))
}

// capacity returns the maximum number of elements in the ring: one place stays empty.
func (r *ring) capacity() int { return int(r.mask) }

// dropUnconsumed drops the elements that have not been consumed. r may be nil.
func (r *ring) dropUnconsumed() {
	if r != nil {
		r.producer.Store(r.consumer.Load())
	}
}
