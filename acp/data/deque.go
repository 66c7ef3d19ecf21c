package data

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/softrnic/softrnic/acp"
)

// Deque is a queue with two ends in the memory of one rank, which all ranks use (acp_deque_t): a ring, so neither end is moved. Its
// elements are like those of a Vector. Each method is done as a whole: they may be called from all ranks at once.
type Deque[T any] struct {
	ring
	codec[T]
}

// NewDeque makes a deque at a rank, with room for so many elements (acp_create_deque).
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

// OpenDeque finds the deque that another rank has made.
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

func dequeHandle[T any](s *Space, at acp.GA) (*Deque[T], error) {
	c, err := elementCodec[T]()
	return &Deque[T]{ring{object{s: s, ga: at, kind: kindDeque, size: c.size, layout: c.layout}}, c}, cmp.Or(s.checkUsable(), err)
}

// PushBack adds elements at the end (acp_push_back_deque).
func (d *Deque[T]) PushBack(ctx context.Context, x ...T) error {
	return d.newError("push back", d.pushBack(ctx, d.valueBytes(x)))
}

// PushFront adds elements before the first, in the order in which they are given (acp_push_front_deque).
func (d *Deque[T]) PushFront(ctx context.Context, x ...T) error {
	return d.newError("push front", d.pushFront(ctx, d.valueBytes(x)))
}

// PopBack takes the last element (acp_pop_back_deque). Without any it is ErrEmpty.
func (d *Deque[T]) PopBack(ctx context.Context) (T, error) {
	b, err := d.popBack(ctx)
	return d.decodeOne(b, "pop back", err)
}

// PopFront takes the first element (acp_pop_front_deque). Without any it is ErrEmpty.
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

// Set replaces elements from i on.
func (d *Deque[T]) Set(ctx context.Context, i int, x ...T) error {
	return d.newError("set", d.storeRange(ctx, i, d.valueBytes(x)))
}

// Insert puts elements before element i, or at the end (acp_insert_deque).
func (d *Deque[T]) Insert(ctx context.Context, i int, x ...T) error {
	return d.newError("insert", d.insertRange(ctx, i, d.valueBytes(x)))
}

// Erase takes n elements out, from i on (acp_erase_deque).
func (d *Deque[T]) Erase(ctx context.Context, i, n int) error {
	return d.newError("erase", d.eraseRange(ctx, i, n))
}

// Clear takes all elements out. Their memory stays the deque's.
func (d *Deque[T]) Clear(ctx context.Context) error { return d.newError("clear", d.clearAll(ctx)) }

// Reserve makes room for n elements in all (acp_reserve_deque).
func (d *Deque[T]) Reserve(ctx context.Context, n int) error {
	return d.newError("reserve", d.reserveTotal(ctx, n))
}

// All are the elements as they are at the time of the call, in order. An error is the last.
func (d *Deque[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return allValues(d.codec, func() ([]byte, error) {
		b, err := d.loadAll(ctx)
		return b, d.newError("all", err)
	})
}

// Destroy frees the deque (acp_destroy_deque), as Vector.Destroy does a vector.
func (d *Deque[T]) Destroy(ctx context.Context) error {
	return d.newError("destroy", d.destroyRing(ctx))
}
