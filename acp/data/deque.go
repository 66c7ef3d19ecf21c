package data

import (
	"context"

	"github.com/softrnic/softrnic/acp"
)

// Deque is a double-ended queue in the memory of one rank that all ranks share (acp_deque_t). It is a ring,
// so pushes and pops move no elements. Its element types are those of a Vector. Methods are atomic with each
// other.
type Deque[T any] struct{ sequence[T] }

// NewDeque creates a deque at a rank, with capacity for a number of elements (acp_create_deque).
func NewDeque[T any](ctx context.Context, s *Space, rank, capacity int) (*Deque[T], error) {
	q, err := newSequence[T](ctx, s, kindDeque, rank, capacity)
	if err != nil {
		return nil, err
	}
	return &Deque[T]{q}, nil
}

// OpenDeque opens the deque at an address.
func OpenDeque[T any](ctx context.Context, s *Space, at acp.GA) (*Deque[T], error) {
	q, err := openSequence[T](ctx, s, kindDeque, at)
	if err != nil {
		return nil, err
	}
	return &Deque[T]{q}, nil
}

// PushFront inserts elements before the first one, in the order in which they are given
// (acp_push_front_deque).
func (d *Deque[T]) PushFront(ctx context.Context, x ...T) error {
	return d.newError("push front", d.pushFront(ctx, d.valueBytes(x)))
}

// PopFront removes and returns the first element (acp_pop_front_deque). It returns ErrEmpty if there is none.
func (d *Deque[T]) PopFront(ctx context.Context) (T, error) {
	b, err := d.popFront(ctx)
	return d.decodeOne(b, "pop front", err)
}
