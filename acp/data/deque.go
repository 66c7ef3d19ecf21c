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
	d, err := deque[T](s, acp.Null)
	if err == nil {
		err = d.create(ctx, rank, capacity)
	}
	if err != nil {
		return nil, s.wrong("create", fmt.Sprintf("deque of %v at rank %d", reflect.TypeFor[T](), rank), err)
	}
	return d, nil
}

// OpenDeque finds the deque that another rank has made.
func OpenDeque[T any](ctx context.Context, s *Space, at acp.GA) (*Deque[T], error) {
	d, err := deque[T](s, at)
	if err == nil {
		err = d.check(ctx)
	}
	if err != nil {
		return nil, s.wrong("open", fmt.Sprintf("deque of %v at %v", reflect.TypeFor[T](), at), err)
	}
	return d, nil
}

func deque[T any](s *Space, at acp.GA) (*Deque[T], error) {
	c, err := elementCodec[T]()
	return &Deque[T]{ring{object{s: s, ga: at, kind: kindDeque, size: c.size, layout: c.layout}}, c}, cmp.Or(s.usable(), err)
}

// PushBack adds elements at the end (acp_push_back_deque).
func (d *Deque[T]) PushBack(ctx context.Context, x ...T) error {
	return d.wrong("push back", d.pushBack(ctx, d.image(x)))
}

// PushFront adds elements before the first, in the order in which they are given (acp_push_front_deque).
func (d *Deque[T]) PushFront(ctx context.Context, x ...T) error {
	return d.wrong("push front", d.pushFront(ctx, d.image(x)))
}

// PopBack takes the last element (acp_pop_back_deque). Without any it is ErrEmpty.
func (d *Deque[T]) PopBack(ctx context.Context) (T, error) {
	b, err := d.popBack(ctx)
	return d.one(b, "pop back", err)
}

// PopFront takes the first element (acp_pop_front_deque). Without any it is ErrEmpty.
func (d *Deque[T]) PopFront(ctx context.Context) (T, error) {
	b, err := d.popFront(ctx)
	return d.one(b, "pop front", err)
}

// At returns element i.
func (d *Deque[T]) At(ctx context.Context, i int) (T, error) {
	b, err := d.load(ctx, i, 1)
	return d.one(b, "at", err)
}

func (d *Deque[T]) one(b []byte, op string, err error) (x T, _ error) {
	if err != nil {
		return x, d.wrong(op, err)
	}
	return d.value(b), nil
}

// Set replaces elements from i on.
func (d *Deque[T]) Set(ctx context.Context, i int, x ...T) error {
	return d.wrong("set", d.store(ctx, i, d.image(x)))
}

// Insert puts elements before element i, or at the end (acp_insert_deque).
func (d *Deque[T]) Insert(ctx context.Context, i int, x ...T) error {
	return d.wrong("insert", d.insert(ctx, i, d.image(x)))
}

// Erase takes n elements out, from i on (acp_erase_deque).
func (d *Deque[T]) Erase(ctx context.Context, i, n int) error {
	return d.wrong("erase", d.erase(ctx, i, n))
}

// Clear takes all elements out. Their memory stays the deque's.
func (d *Deque[T]) Clear(ctx context.Context) error { return d.wrong("clear", d.clear(ctx)) }

// Reserve makes room for n elements in all (acp_reserve_deque).
func (d *Deque[T]) Reserve(ctx context.Context, n int) error {
	return d.wrong("reserve", d.reserve(ctx, n))
}

// All are the elements as they are at the time of the call, in order. An error is the last.
func (d *Deque[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return all(d.codec, func() ([]byte, error) {
		b, err := d.loadAll(ctx)
		return b, d.wrong("all", err)
	})
}

// Destroy frees the deque (acp_destroy_deque), as Vector.Destroy does a vector.
func (d *Deque[T]) Destroy(ctx context.Context) error { return d.wrong("destroy", d.dispose(ctx)) }
