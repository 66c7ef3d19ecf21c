package data

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/softrnic/softrnic/acp"
)

// Deque is a double-ended queue in the memory of one rank that all ranks share (acp_deque_t). It is a ring,
// so pushes and pops move no elements. Its element types are those of a Vector. Methods are atomic with each
// other.
type Deque[T any] struct {
	ring
	codec[T]
}

// NewDeque creates a deque at a rank, with capacity for a number of elements (acp_create_deque).
func NewDeque[T any](ctx context.Context, s *Space, rank, capacity int) (*Deque[T], error) {
	d, err := dequeHandle[T](s, acp.Null)
	if err == nil {
		err = d.createRing(ctx, rank, capacity)
	}
	if err != nil {
		return nil, s.newError("create", fmt.Sprintf("deque of %v at rank %d", reflect.TypeFor[T](), rank), err)
	}
	return d, nil
}

// OpenDeque opens the deque at an address.
func OpenDeque[T any](ctx context.Context, s *Space, at acp.GA) (*Deque[T], error) {
	d, err := dequeHandle[T](s, at)
	if err == nil {
		err = d.checkExists(ctx)
	}
	if err != nil {
		return nil, s.newError("open", fmt.Sprintf("deque of %v at %v", reflect.TypeFor[T](), at), err)
	}
	return d, nil
}

// dequeHandle returns a handle of the deque at an address.
func dequeHandle[T any](s *Space, at acp.GA) (*Deque[T], error) {
	c, err := elementCodec[T]()
	return &Deque[T]{ring{object{s: s, ga: at, kind: kindDeque, size: c.size, layout: c.layout}}, c}, cmp.Or(s.checkUsable(), err)
}

// PushBack appends elements (acp_push_back_deque).
func (d *Deque[T]) PushBack(ctx context.Context, x ...T) error {
	return d.newError("push back", d.pushBack(ctx, d.valueBytes(x)))
}

// PushFront inserts elements before the first one, in the order in which they are given
// (acp_push_front_deque).
func (d *Deque[T]) PushFront(ctx context.Context, x ...T) error {
	return d.newError("push front", d.pushFront(ctx, d.valueBytes(x)))
}

// PopBack removes and returns the last element (acp_pop_back_deque). It returns ErrEmpty if there is none.
func (d *Deque[T]) PopBack(ctx context.Context) (T, error) {
	b, err := d.popBack(ctx)
	return d.decodeOne(b, "pop back", err)
}

// PopFront removes and returns the first element (acp_pop_front_deque). It returns ErrEmpty if there is none.
func (d *Deque[T]) PopFront(ctx context.Context) (T, error) {
	b, err := d.popFront(ctx)
	return d.decodeOne(b, "pop front", err)
}

// At returns element i.
func (d *Deque[T]) At(ctx context.Context, i int) (T, error) {
	b, err := d.loadRange(ctx, i, 1)
	return d.decodeOne(b, "at", err)
}

func (d *Deque[T]) decodeOne(b []byte, op string, err error) (x T, _ error) {
	if err != nil {
		return x, d.newError(op, err)
	}
	return d.decodeValue(b), nil
}

// Set replaces the elements from i on.
func (d *Deque[T]) Set(ctx context.Context, i int, x ...T) error {
	return d.newError("set", d.storeRange(ctx, i, d.valueBytes(x)))
}

// Insert inserts elements before element i, or at the end (acp_insert_deque).
func (d *Deque[T]) Insert(ctx context.Context, i int, x ...T) error {
	return d.newError("insert", d.insertRange(ctx, i, d.valueBytes(x)))
}

// Erase removes n elements from i on (acp_erase_deque).
func (d *Deque[T]) Erase(ctx context.Context, i, n int) error {
	return d.newError("erase", d.eraseRange(ctx, i, n))
}

// Clear removes all elements. The deque keeps their memory.
func (d *Deque[T]) Clear(ctx context.Context) error { return d.newError("clear", d.clearAll(ctx)) }

// Reserve increases the capacity to at least n elements (acp_reserve_deque).
func (d *Deque[T]) Reserve(ctx context.Context, n int) error {
	return d.newError("reserve", d.reserveTotal(ctx, n))
}

// All returns an iterator over a snapshot of the elements, in order. An error ends the iteration.
func (d *Deque[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return allValues(d.codec, func() ([]byte, error) {
		b, err := d.loadAll(ctx)
		return b, d.newError("all", err)
	})
}

// Destroy frees the deque (acp_destroy_deque): see Vector.Destroy.
func (d *Deque[T]) Destroy(ctx context.Context) error {
	return d.newError("destroy", d.destroyRing(ctx))
}
