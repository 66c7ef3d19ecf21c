package data

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/softrnic/softrnic/acp"
)

// sequence is the elements of a Vector or a Deque, with the methods that both have. Methods are atomic with
// each other.
type sequence[T any] struct {
	ring
	codec[T]
}

// newSequence creates a sequence of a kind at a rank.
func newSequence[T any](ctx context.Context, s *Space, k kind, rank, capacity int) (sequence[T], error) {
	q, err := sequenceHandle[T](s, k, acp.Null)
	if err == nil {
		err = q.createRing(ctx, rank, capacity)
	}
	return q, s.newError("create", fmt.Sprintf("%v of %v at rank %d", k, reflect.TypeFor[T](), rank), err)
}

// openSequence opens the sequence of a kind at an address.
func openSequence[T any](ctx context.Context, s *Space, k kind, at acp.GA) (sequence[T], error) {
	q, err := sequenceHandle[T](s, k, at)
	if err == nil {
		err = q.checkExists(ctx)
	}
	return q, s.newError("open", fmt.Sprintf("%v of %v at %v", k, reflect.TypeFor[T](), at), err)
}

// sequenceHandle returns a handle of the sequence at an address. Its elements must not be empty.
func sequenceHandle[T any](s *Space, k kind, at acp.GA) (sequence[T], error) {
	c, err := flatCodec[T]()
	if err == nil && c.size == 0 {
		err = fmt.Errorf("%w: type %v has size 0", ErrFlat, reflect.TypeFor[T]())
	}
	return sequence[T]{ring{object{s: s, ga: at, kind: k, size: c.size, layout: c.layout}}, c}, cmp.Or(s.checkUsable(), err)
}

// readRange returns n elements from i on, for the call op.
func (q *sequence[T]) readRange(ctx context.Context, op string, i, n int) (b []byte, err error) {
	err = q.withHeader(ctx, op, func(h *header) error {
		if err := checkIndex(h, i, n); err != nil {
			return err
		}
		b, err = q.readElements(h, i, n)
		return err
	})
	return b, err
}

// pop returns the element that remove reads and removes, for the call op.
func (q *sequence[T]) pop(ctx context.Context, op string, remove func(h *header) ([]byte, error)) (x T, err error) {
	err = q.withHeader(ctx, op, func(h *header) error {
		if h.length == 0 {
			return ErrEmpty
		}
		b, err := remove(h)
		if err == nil {
			x = q.decodeValue(b)
		}
		return err
	})
	return x, err
}

// At returns element i.
func (q *sequence[T]) At(ctx context.Context, i int) (x T, _ error) {
	b, err := q.readRange(ctx, "at", i, 1)
	if err != nil {
		return x, err
	}
	return q.decodeValue(b), nil
}

// Slice returns n elements from i on.
func (q *sequence[T]) Slice(ctx context.Context, i, n int) ([]T, error) {
	b, err := q.readRange(ctx, "slice", i, n)
	return q.decodeValues(b), err
}

// Set replaces the elements from i on.
func (q *sequence[T]) Set(ctx context.Context, i int, x ...T) error {
	return q.withHeader(ctx, "set", func(h *header) error {
		if err := checkIndex(h, i, len(x)); err != nil {
			return err
		}
		q.writeElements(h, i, q.valueBytes(x))
		return nil
	})
}

// PushBack appends elements (acp_push_back_vector, acp_push_back_deque).
func (q *sequence[T]) PushBack(ctx context.Context, x ...T) error {
	return q.withHeader(ctx, "push back", func(h *header) error {
		if err := q.reserveMore(ctx, h, len(x)); err != nil {
			return err
		}
		h.length += uint64(len(x))
		q.writeElements(h, int(h.length)-len(x), q.valueBytes(x))
		return nil
	})
}

// PopBack removes and returns the last element (acp_pop_back_vector, acp_pop_back_deque). It returns ErrEmpty
// if there is none.
func (q *sequence[T]) PopBack(ctx context.Context) (T, error) {
	return q.pop(ctx, "pop back", func(h *header) ([]byte, error) {
		h.length--
		return q.readElements(h, int(h.length), 1)
	})
}

// Insert inserts elements before element i, or at the end (acp_insert_vector, acp_insert_deque).
func (q *sequence[T]) Insert(ctx context.Context, i int, x ...T) error {
	return q.withHeader(ctx, "insert", func(h *header) error {
		if err := checkIndex(h, i, 0); err != nil {
			return err
		}
		if err := q.reserveMore(ctx, h, len(x)); err != nil {
			return err
		}
		behind, err := q.readElements(h, i, int(h.length)-i)
		if err != nil {
			return err
		}
		h.length += uint64(len(x))
		q.writeElements(h, i, slices.Concat(q.valueBytes(x), behind))
		return nil
	})
}

// Erase removes n elements from i on (acp_erase_vector, acp_erase_deque).
func (q *sequence[T]) Erase(ctx context.Context, i, n int) error {
	return q.withHeader(ctx, "erase", func(h *header) error {
		if err := checkIndex(h, i, n); err != nil {
			return err
		}
		behind, err := q.readElements(h, i+n, int(h.length)-i-n)
		if err != nil {
			return err
		}
		h.length -= uint64(n)
		q.writeElements(h, i, behind)
		return nil
	})
}

// Clear removes all elements. Their memory is kept.
func (q *sequence[T]) Clear(ctx context.Context) error {
	return q.withHeader(ctx, "clear", func(h *header) error {
		h.length, h.words[ringHead] = 0, 0
		return nil
	})
}

// Reserve increases the capacity to at least n elements (acp_reserve_vector, acp_reserve_deque).
func (q *sequence[T]) Reserve(ctx context.Context, n int) error {
	return q.withHeader(ctx, "reserve", func(h *header) error { return q.growTo(ctx, h, n) })
}

// Cap returns the capacity in elements.
func (q *sequence[T]) Cap(ctx context.Context) (n int, err error) {
	err = q.withHeader(ctx, "cap", func(h *header) error {
		n = int(h.words[ringCap])
		return nil
	})
	return n, err
}

// All returns an iterator over a snapshot of the elements, in order. An error ends the iteration.
func (q *sequence[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var b []byte
		err := q.withHeader(ctx, "all", func(h *header) (err error) {
			b, err = q.readElements(h, 0, int(h.length))
			return err
		})
		if err != nil {
			yield(*new(T), err)
			return
		}
		for _, x := range q.decodeValues(b) {
			if !yield(x, nil) {
				return
			}
		}
	}
}

// Destroy frees the structure (acp_destroy_vector, acp_destroy_deque). Later methods of other handles return
// ErrDestroyed until the memory is reused.
func (q *sequence[T]) Destroy(ctx context.Context) error {
	return q.newError("destroy", q.destroyObject(ctx, func(h *header) error {
		if body := acp.GA(h.words[ringBody]); body != acp.Null {
			return q.s.free(withoutCancel(ctx), body)
		}
		return nil
	}))
}

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
	err = v.withHeader(ctx, "address", func(h *header) error {
		if err := checkIndex(h, i, 1); err != nil {
			return err
		}
		at = v.spansOf(h, i, 1)[0].at
		return nil
	})
	return at, err
}

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
	return d.withHeader(ctx, "push front", func(h *header) error {
		if err := d.reserveMore(ctx, h, len(x)); err != nil || len(x) == 0 {
			return err
		}
		n := uint64(len(x))
		h.length += n
		h.words[ringHead] = (h.words[ringHead] + h.words[ringCap] - n) % h.words[ringCap]
		d.writeElements(h, 0, d.valueBytes(x))
		return nil
	})
}

// PopFront removes and returns the first element (acp_pop_front_deque). It returns ErrEmpty if there is none.
func (d *Deque[T]) PopFront(ctx context.Context) (T, error) {
	return d.pop(ctx, "pop front", func(h *header) ([]byte, error) {
		b, err := d.readElements(h, 0, 1)
		if err == nil {
			h.length--
			h.words[ringHead] = (h.words[ringHead] + 1) % h.words[ringCap]
		}
		return b, err
	})
}
