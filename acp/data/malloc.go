package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// Malloc allocates n bytes in the heap of a rank, and returns their address (acp_malloc). The address is a
// multiple of 64 in the heap, so atomics may be used on it. The memory is not cleared. A block occupies 64
// bytes times a power of two.
//
// The end of ctx interrupts only the wait for the heap's lock.
func (s *Space) Malloc(ctx context.Context, rank, n int) (acp.GA, error) {
	ga, err := s.malloc(ctx, rank, n)
	return ga, s.newError("malloc", fmt.Sprintf("%d bytes at rank %d", n, rank), err)
}

// malloc is Malloc with an unwrapped error.
func (s *Space) malloc(ctx context.Context, rank, n int) (ga acp.GA, err error) {
	if n < 0 {
		return acp.Null, acp.ErrLength
	}
	err = s.inHeap(ctx, rank, func(heap acp.GA, b buddy) error {
		off, err := b.alloc(uint64(n))
		ga = heap + acp.GA(off)
		return err
	})
	if err != nil {
		return acp.Null, err
	}
	return ga, nil
}

// Free frees an allocated block of any rank (acp_free). It returns ErrNotAllocated if no allocated block
// begins at ga, for example after a double free.
func (s *Space) Free(ctx context.Context, ga acp.GA) error {
	return s.newError("free", ga.String(), s.free(ctx, ga))
}

// free is Free with an unwrapped error.
func (s *Space) free(ctx context.Context, ga acp.GA) error {
	if ga == acp.Null {
		return ErrNotAllocated
	}
	return s.inHeap(ctx, ga.Rank(), func(heap acp.GA, b buddy) error {
		if regionOf(heap) != regionOf(ga) {
			return fmt.Errorf("%w: heap is region %d", ErrNotAllocated, regionOf(heap))
		}
		return b.free(offsetOf(ga))
	})
}

// HeapStats is the usage of a heap.
type HeapStats struct {
	Blocks   uint64 // number of allocated blocks
	Bytes    uint64 // their total length
	Capacity uint64 // total length of all blocks
}

// Stats returns the usage of the heap of a rank.
func (s *Space) Stats(ctx context.Context, rank int) (h HeapStats, err error) {
	err = s.inHeap(ctx, rank, func(_ acp.GA, b buddy) (err error) {
		h.Capacity = b.blocks * blockSize
		if h.Blocks, err = b.getWord(offLive); err == nil {
			h.Bytes, err = b.getWord(offBytes)
		}
		return err
	})
	return h, s.newError("stats", fmt.Sprintf("of the heap of rank %d", rank), err)
}

// inHeap calls f with a heap locked. The changes are written unless f returns an error.
func (s *Space) inHeap(ctx context.Context, rank int, f func(heap acp.GA, b buddy) error) error {
	heap, err := s.heapOf(rank)
	if err != nil {
		return err
	}
	mine, err := s.lockStruct(ctx, heap, kindHeap)
	if errors.Is(err, ErrKind) {
		err = fmt.Errorf("rank %d: %w", rank, ErrNoHeap)
	}
	if err != nil {
		return err
	}
	from := remoteStore{s, heap}
	b, err := openBuddy(newWordCache(from))
	if err == nil {
		err = f(heap, b)
	}
	if err != nil {
		return errors.Join(err, s.unlockStruct(heap, mine, kindHeap.freeWord()))
	}
	return s.unlockStruct(heap, mine, kindHeap.freeWord(), from.pendingWrites(b.edits)...)
}

// regionOf returns the number of the region of an address at its rank.
func regionOf(at acp.GA) int { return protocol.GA(at).Region() }

// offsetOf returns the offset of an address in its region in bytes.
func offsetOf(at acp.GA) uint64 { return protocol.GA(at).Offset() }
