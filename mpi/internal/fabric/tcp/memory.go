package tcp

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A registration is memory that a rank may read, and possibly write.
type registration struct {
	key   uint32
	rank  int
	b     []byte
	write bool
}

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// RegisterMemory implements protocol.Net. The goroutine that handles the frames of the
// rank accesses the memory.
func (f *Fabric) RegisterMemory(rank int, b []byte, write bool) (envelope.Key, protocol.Registration, error) {
	e := &registration{key: rand.Uint32(), rank: rank, b: b, write: write}
	for f.registered[e.key] != nil {
		e.key = rand.Uint32()
	}
	f.registered[e.key] = e
	return envelope.Key{Addr: addressOf(b), RKey: e.key}, e, nil
}

// DeregisterMemory implements protocol.Net.
func (f *Fabric) DeregisterMemory(e protocol.Registration) {
	delete(f.registered, e.(*registration).key)
}

// checkedMemory returns the memory that a frame refers to, if the rank may access it.
func (f *Fabric) checkedMemory(rank int, h *frame, n int) ([]byte, error) {
	e := f.registered[h.Key]
	if e == nil || e.rank != rank || !e.write && h.Kind != readFrame {
		return nil, fmt.Errorf("%w: access to key %#x denied", envelope.ErrMalformed, h.Key)
	}
	off := h.Addr - addressOf(e.b) // wraps around if below
	if off > uint64(len(e.b)) || uint64(n) > uint64(len(e.b))-off {
		return nil, fmt.Errorf("%w: %d bytes at offset %d of a registration of %d bytes", envelope.ErrMalformed, n, int64(off), len(e.b))
	}
	return e.b[off:][:n], nil
}

// maxReplyBytes is the maximum number of bytes of replies in the send queue, beyond
// Options.Queue: more than a rank requests at a time.
const maxReplyBytes = 4 * readWindow

// handleMemoryFrame executes a request of a rank on local memory.
func (l *link) handleMemoryFrame(h *frame, payload []byte) error {
	if len(l.queue.pendingBytes()) > l.f.o.Queue+maxReplyBytes {
		return fmt.Errorf("%w: peer requests without reading the replies", envelope.ErrMalformed)
	}
	n := int(h.Bytes)
	if h.Kind == addFrame || h.Kind == swapFrame {
		n = 8
	}
	mem, err := l.f.checkedMemory(l.rank, h, n)
	if err != nil {
		return err
	}
	switch h.Kind {
	case writeFrame, writeLastFrame:
		copy(mem, payload)
		if h.Kind == writeLastFrame {
			l.sendFrame(&frame{Kind: doneFrame, Transfer: h.Transfer}, nil)
		}
	case readFrame:
		l.sendFrame(&frame{Kind: readReplyFrame, Transfer: h.Transfer, Offset: h.Offset, Bytes: h.Bytes}, mem)
	case addFrame, swapFrame:
		p := unsafe.Pointer(unsafe.SliceData(mem))
		if uintptr(p)%8 != 0 {
			return fmt.Errorf("%w: atomic at unaligned address %p", envelope.ErrMalformed, p)
		}
		l.sendFrame(&frame{Kind: doneFrame, Transfer: h.Transfer, Offset: applyAtomic((*uint64)(p), h)}, nil)
	}
	return nil
}

// applyAtomic executes an atomic operation and returns the previous value.
func applyAtomic(p *uint64, h *frame) uint64 {
	if h.Kind == addFrame {
		return atomic.AddUint64(p, h.Offset) - h.Offset
	}
	for {
		if atomic.CompareAndSwapUint64(p, h.Offset, h.New) {
			return h.Offset
		}
		if was := atomic.LoadUint64(p); was != h.Offset {
			return was
		}
	}
}
