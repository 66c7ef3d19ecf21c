package data

import (
	"context"

	"github.com/softrnic/softrnic/acp"
)

// Vector is a slice in the memory of one rank that all ranks share (acp_vector_t). Its elements are stored as
// they are in memory, so T must not contain pointers, slices, strings, maps, channels, functions or
// interfaces. Methods are atomic with each other.
type Vector[T any] struct{ sequence[T] }

// NewVector creates a vector at a rank, with capacity for a number of elements (acp_create_vector).
func NewVector[T any](ctx context.Context, s *Space, rank, capacity int) (*Vector[T], error) {
	q, err := newSequence[T](ctx, s, kindVector, rank, capacity)
	if err != nil {
		return nil, err
	}
	return &Vector[T]{q}, nil
}

// OpenVector opens the vector at an address.
func OpenVector[T any](ctx context.Context, s *Space, at acp.GA) (*Vector[T], error) {
	q, err := openSequence[T](ctx, s, kindVector, at)
	if err != nil {
		return nil, err
	}
	return &Vector[T]{q}, nil
}

// Address returns the address of element i (acp_at_vector), for copies and atomics of package acp. It is
// valid until the vector outgrows its capacity or is destroyed; later accesses corrupt other data.
func (v *Vector[T]) Address(ctx context.Context, i int) (at acp.GA, err error) {
	err = v.withHeader(ctx, func(h *header) error {
		if err := checkIndex(h, i, 1); err != nil {
			return err
		}
		at = v.spansOf(h, i, 1)[0].at
		return nil
	})
	return at, v.newError("address", err)
}
