package tcp

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// exposure is memory that a rank may read, and perhaps write.
type exposure struct {
	key   uint32
	rank  int
	b     []byte
	write bool
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// RegisterMemory implements protocol.Net: what the rank does to the memory, the goroutine
// that reads from it does here.
func (f *Fabric) RegisterMemory(rank int, b []byte, write bool) (envelope.Key, protocol.Registration, error) {
	e := &exposure{key: rand.Uint32(), rank: rank, b: b, write: write}
	for f.exposed[e.key] != nil {
		e.key = rand.Uint32()
	}
	f.exposed[e.key] = e
	return envelope.Key{Addr: address(b), RKey: e.key}, e, nil
}

// DeregisterMemory implements protocol.Net.
func (f *Fabric) DeregisterMemory(e protocol.Registration) { delete(f.exposed, e.(*exposure).key) }

// memory is what a frame of a rank names, if the rank may have it.
func (f *Fabric) memory(rank int, h *frame, n int) ([]byte, error) {
	e := f.exposed[h.Key]
	if e == nil || e.rank != rank || !e.write && h.Kind != fetchFrame {
		return nil, fmt.Errorf("%w: no key %#x for that", envelope.ErrMalformed, h.Key)
	}
	off := h.Addr - address(e.b) // which wraps, if it is before
	if off > uint64(len(e.b)) || uint64(n) > uint64(len(e.b))-off {
		return nil, fmt.Errorf("%w: %d bytes at %d of %d", envelope.ErrMalformed, n, int64(off), len(e.b))
	}
	return e.b[off:][:n], nil
}

// maxAnswers is how many bytes may wait for the system to take them beside what
// waits anyway: what a rank asks for at a time, and more.
const maxAnswers = 4 * fetchAhead

// serve handles a frame of a rank that concerns memory here.
func (l *link) serve(h *frame, payload []byte) error {
	if len(l.queue) > l.f.o.Queue+maxAnswers {
		return fmt.Errorf("%w: more is asked for than is taken", envelope.ErrMalformed)
	}
	n := int(h.Bytes)
	if h.Kind == addFrame || h.Kind == swapFrame {
		n = 8
	}
	mem, err := l.f.memory(l.rank, h, n)
	if err != nil {
		return err
	}
	switch h.Kind {
	case storeFrame, storeLast:
		copy(mem, payload)
		if h.Kind == storeLast {
			l.sendFrame(&frame{Kind: doneFrame, Move: h.Move}, nil)
		}
	case fetchFrame:
		l.sendFrame(&frame{Kind: dataFrame, Move: h.Move, Offset: h.Offset, Bytes: h.Bytes}, mem)
	case addFrame, swapFrame:
		p := unsafe.Pointer(unsafe.SliceData(mem))
		if uintptr(p)%8 != 0 {
			return fmt.Errorf("%w: an atomic at %p", envelope.ErrMalformed, p)
		}
		l.sendFrame(&frame{Kind: doneFrame, Move: h.Move, Offset: change((*uint64)(p), h)}, nil)
	}
	return nil
}

// change carries out an atomic operation, and returns what was there before.
func change(p *uint64, h *frame) uint64 {
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
