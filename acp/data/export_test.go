package data

import (
	"context"

	"github.com/softrnic/softrnic/acp"
)

// HoldHeap locks a rank's heap, like a malloc that never completes.
func (s *Space) HoldHeap(ctx context.Context, rank int) (release func() error, err error) {
	heap, err := s.heapOf(rank)
	if err != nil {
		return nil, err
	}
	return s.hold(ctx, heap, kindHeap)
}

// HoldVector locks a vector.
func (s *Space) HoldVector(ctx context.Context, at acp.GA) (release func() error, err error) {
	return s.hold(ctx, at, kindVector)
}

// HoldBucket locks the bucket of a string.
func (m *Map[K, V]) HoldBucket(ctx context.Context, key string) (release func() error, err error) {
	return m.s.hold(ctx, m.bucketFor(hashOf([]byte(key))).at, kindBucket)
}

func (s *Space) hold(ctx context.Context, at acp.GA, k kind) (release func() error, err error) {
	mine, err := s.lockStruct(ctx, at, k)
	return func() error { return s.unlockStruct(at, mine, k.freeWord()) }, err
}

// Peek reads memory of any rank.
func (s *Space) Peek(from acp.GA, n int) ([]byte, error) {
	b := make([]byte, n)
	return b, s.readBytes(from, b)
}

// Poke writes memory of any rank.
func (s *Space) Poke(to acp.GA, b []byte) error { return s.writeAll(pendingWrite{to: to, b: b}) }
