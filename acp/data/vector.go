package data

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/softrnic/softrnic/acp"
)

// Vector is a slice in the memory of one rank that all ranks share (acp_vector_t). Its elements are stored as
// they are in memory, so T must not contain pointers, slices, strings, maps, channels, functions or
// interfaces. Methods are atomic with each other.
type Vector[T any] struct {
	ring
	codec[T]
}

// NewVector creates a vector at a rank, with capacity for a number of elements (acp_create_vector).
func NewVector[T any](ctx context.Context, s *Space, rank, capacity int) (*Vector[T], error) {
	v, err := vectorHandle[T](s, acp.Null)
	if err == nil {
		err = v.createRing(ctx, rank, capacity)
	}
	if err != nil {
		return nil, s.newError("create", fmt.Sprintf("vector of %v at rank %d", reflect.TypeFor[T](), rank), err)
	}
	return v, nil
}

// OpenVector opens the vector at an address.
func OpenVector[T any](ctx context.Context, s *Space, at acp.GA) (*Vector[T], error) {
	v, err := vectorHandle[T](s, at)
	if err == nil {
		err = v.checkExists(ctx)
	}
	if err != nil {
		return nil, s.newError("open", fmt.Sprintf("vector of %v at %v", reflect.TypeFor[T](), at), err)
	}
	return v, nil
}

// vectorHandle returns a handle of the vector at an address.
func vectorHandle[T any](s *Space, at acp.GA) (*Vector[T], error) {
	c, err := elementCodec[T]()
	return &Vector[T]{ring{object{s: s, ga: at, kind: kindVector, size: c.size, layout: c.layout}}, c}, cmp.Or(s.checkUsable(), err)
}

// At returns element i.
func (v *Vector[T]) At(ctx context.Context, i int) (x T, err error) {
	b, err := v.loadRange(ctx, i, 1)
	if err != nil {
		return x, v.newError("at", err)
	}
	return v.decodeValue(b), nil
}

// Slice returns n elements from i on.
func (v *Vector[T]) Slice(ctx context.Context, i, n int) ([]T, error) {
	b, err := v.loadRange(ctx, i, n)
	return v.decodeValues(b), v.newError("slice", err)
}

// Set replaces the elements from i on.
func (v *Vector[T]) Set(ctx context.Context, i int, x ...T) error {
	return v.newError("set", v.storeRange(ctx, i, v.valueBytes(x)))
}

// PushBack appends elements (acp_push_back_vector).
func (v *Vector[T]) PushBack(ctx context.Context, x ...T) error {
	return v.newError("push back", v.pushBack(ctx, v.valueBytes(x)))
}

// PopBack removes and returns the last element. It returns ErrEmpty if there is none.
func (v *Vector[T]) PopBack(ctx context.Context) (x T, err error) {
	b, err := v.popBack(ctx)
	if err != nil {
		return x, v.newError("pop back", err)
	}
	return v.decodeValue(b), nil
}

// Insert inserts elements before element i, or at the end (acp_insert_vector).
func (v *Vector[T]) Insert(ctx context.Context, i int, x ...T) error {
	return v.newError("insert", v.insertRange(ctx, i, v.valueBytes(x)))
}

// Erase removes n elements from i on (acp_erase_vector).
func (v *Vector[T]) Erase(ctx context.Context, i, n int) error {
	return v.newError("erase", v.eraseRange(ctx, i, n))
}

// Clear removes all elements. The vector keeps their memory.
func (v *Vector[T]) Clear(ctx context.Context) error { return v.newError("clear", v.clearAll(ctx)) }

// Reserve increases the capacity to at least n elements (acp_reserve_vector).
func (v *Vector[T]) Reserve(ctx context.Context, n int) error {
	return v.newError("reserve", v.reserveTotal(ctx, n))
}

// Cap returns the capacity in elements.
func (v *Vector[T]) Cap(ctx context.Context) (n int, err error) {
	n, err = v.capacity(ctx)
	return n, v.newError("cap", err)
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

// All returns an iterator over a snapshot of the elements, in order. An error ends the iteration.
func (v *Vector[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return allValues(v.codec, func() ([]byte, error) {
		b, err := v.loadAll(ctx)
		return b, v.newError("all", err)
	})
}

// Destroy frees the vector (acp_destroy_vector). Later methods of other handles return ErrDestroyed until the
// memory is reused.
func (v *Vector[T]) Destroy(ctx context.Context) error {
	return v.newError("destroy", v.destroyRing(ctx))
}

// elementCodec returns the codec of the elements of a ring, which must not be empty.
func elementCodec[T any]() (codec[T], error) {
	c, err := flatCodec[T]()
	if err == nil && c.size == 0 {
		err = fmt.Errorf("%w: type %v has size 0", ErrFlat, reflect.TypeFor[T]())
	}
	return c, err
}

// allValues returns an iterator over the values of bytes that are read at once.
func allValues[T any](c codec[T], read func() ([]byte, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		b, err := read()
		if err != nil {
			yield(*new(T), err)
			return
		}
		for _, x := range c.decodeValues(b) {
			if !yield(x, nil) {
				return
			}
		}
	}
}
