package data

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// Options configure a rank's heap. The zero value suits most programs.
type Options struct {
	// Heap is the number of bytes of this rank's memory that all ranks may allocate, including the
	// allocator's data. 0 means 1 MiB. The ranks' heaps may differ in length.
	Heap int

	// Anchor is the offset of the word of starter memory that contains the address of the heap, a multiple of
	// 8 and equal at all ranks. 0 means the last word.
	Anchor int

	// ProbeDelay is the time for which a lock may stay unchanged before its holder is probed. 0 means 1 s. A
	// live holder may keep it for twenty times as long.
	ProbeDelay time.Duration
}

// Space is a rank's access to the heaps of all ranks. Its methods, and those of all structures, may be called
// concurrently.
type Space struct {
	p       *acp.Process
	o       Options
	heap    *acp.Region
	lockSeq atomic.Uint64 // sequence number of this rank's locks

	closing sync.Mutex // serializes Close
	closed  bool       // guarded by closing

	mu      sync.Mutex
	heaps   map[int]acp.GA // cache, by rank
	staging [bits.UintSize][]*acp.Region
}

// heapMin is the length of the shortest heap in bytes.
const heapMin = 1 << 10

// applyDefaults fills in the zero fields, and validates the options.
func (o *Options) applyDefaults(p *acp.Process) error {
	if o.Heap == 0 {
		o.Heap = 1 << 20
	}
	if o.Anchor == 0 {
		o.Anchor = len(p.Starter()) - 8
	}
	if o.ProbeDelay <= 0 {
		o.ProbeDelay = time.Second
	}
	switch {
	case o.Heap < heapMin || uint64(o.Heap) > protocol.MaxLength:
		return fmt.Errorf("%w: Options.Heap is %d, want %d to 2^%d", acp.ErrOptions, o.Heap, heapMin, protocol.OffsetBits)
	case o.Anchor < 0 || o.Anchor%8 != 0 || o.Anchor > len(p.Starter())-8:
		return fmt.Errorf("%w: Options.Anchor is %d, want a multiple of 8 within the %d bytes of starter memory", acp.ErrOptions, o.Anchor, len(p.Starter()))
	}
	return nil
}

// Open creates this rank's heap. It is collective: all ranks call it, and it returns when all have.
func Open(ctx context.Context, p *acp.Process, o Options) (*Space, error) {
	s := &Space{p: p, o: o, heaps: map[int]acp.GA{}}
	if err := s.checkUsable(); err != nil {
		return nil, s.newError("open", "heaps", err)
	}
	if err := s.openHeap(ctx); err != nil {
		return nil, s.newError("open", "heaps", err)
	}
	return s, nil
}

// openHeap formats and registers this rank's heap, publishes its address, and waits for the other ranks.
func (s *Space) openHeap(ctx context.Context) (err error) {
	if err = s.o.applyDefaults(s.p); err != nil {
		return err
	}
	anchor := s.p.Starter()[s.o.Anchor:][:8]
	if s.p.LoadStarter(s.o.Anchor) != 0 {
		return fmt.Errorf("%w: Options.Anchor: starter memory at offset %d is in use; choose another offset", acp.ErrOptions, s.o.Anchor)
	}
	mem := make([]byte, s.o.Heap)
	fresh := newWordCache(localStore(mem))
	if err = formatHeap(fresh, uint64(len(mem))); err != nil {
		return err
	}
	fresh.setWord(0, kindHeap.freeWord())
	localStore(mem).writeWords(fresh.edits)
	if s.heap, err = s.p.Register(mem); err != nil {
		return err
	}
	binary.NativeEndian.PutUint64(anchor, uint64(s.heap.GA(0)))
	if err = s.p.Sync(ctx); err != nil {
		return errors.Join(err, s.heap.Close())
	}
	return nil
}

// localStore is a wordStore in local memory that is not shared yet.
type localStore []byte

func (o localStore) readWords(off uint64, w []uint64) error {
	for i := range w {
		w[i] = binary.NativeEndian.Uint64(o[off+8*uint64(i):])
	}
	return nil
}

func (o localStore) writeWords(edits map[uint64]uint64) {
	for off, w := range edits {
		binary.NativeEndian.PutUint64(o[off:], w)
	}
}

// Process returns the rank's process.
func (s *Space) Process() *acp.Process {
	if s == nil {
		return nil
	}
	return s.p
}

// checkUsable returns ErrNull for a null handle.
func (s *Space) checkUsable() error {
	if s == nil || s.p == nil {
		return acp.ErrNull
	}
	return nil
}

// Close destroys this rank's heap with its contents. It is collective. A program that calls Finalize need not
// call it. On a closed space it returns nil at once.
func (s *Space) Close(ctx context.Context) error {
	if err := s.checkUsable(); err != nil {
		return s.newError("close", "heaps", err)
	}
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	if err := s.p.Sync(ctx); err != nil {
		return s.newError("close", "heaps", err)
	}
	s.closed = true
	binary.NativeEndian.PutUint64(s.p.Starter()[s.o.Anchor:], 0)
	err := s.heap.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.staging {
		for _, r := range s.staging[i] {
			err = errors.Join(err, r.Close())
		}
		s.staging[i] = nil
	}
	return s.newError("close", "heaps", err)
}

// heapOf returns the address of the heap of a rank.
func (s *Space) heapOf(rank int) (acp.GA, error) {
	if err := s.checkUsable(); err != nil {
		return acp.Null, err
	}
	if rank < 0 || rank >= s.p.Size() {
		return acp.Null, fmt.Errorf("%w: rank %d of %d", acp.ErrRank, rank, s.p.Size())
	}
	s.mu.Lock()
	at, ok := s.heaps[rank]
	s.mu.Unlock()
	if ok {
		return at, nil
	}
	var w [1]uint64
	if err := s.getWords(s.p.StarterGA(rank).Add(s.o.Anchor), w[:]); err != nil {
		return acp.Null, err
	}
	at = acp.GA(w[0])
	if at == acp.Null || at.Rank() != rank || regionOf(at) == 0 || offsetOf(at) != 0 {
		return acp.Null, fmt.Errorf("rank %d: %w", rank, ErrNoHeap)
	}
	s.mu.Lock()
	s.heaps[rank] = at
	s.mu.Unlock()
	return at, nil
}
