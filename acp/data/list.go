package data

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/softrnic/softrnic/acp"
)

// List is a doubly linked list that all ranks share, with elements at any rank (acp_list_t). T is a type of
// fixed size, as for a Vector, or string or []byte. Methods are atomic with each other.
//
// An element has an address that is valid at all ranks. The address of an erased element returns ErrElement,
// until its memory is reused for an element of the same list.
type List[T any] struct {
	linkedList
	codec[T]
	rank int // where new elements are allocated
}

// NewList creates a list at a rank (acp_create_list).
func NewList[T any](ctx context.Context, s *Space, rank int) (*List[T], error) {
	l, err := listHandle[T](s, acp.Null)
	if err == nil {
		err = l.createObject(ctx, rank)
	}
	if err != nil {
		return nil, s.newError("create", fmt.Sprintf("list of %v at rank %d", reflect.TypeFor[T](), rank), err)
	}
	return l.On(rank), nil
}

// OpenList opens the list at an address.
func OpenList[T any](ctx context.Context, s *Space, at acp.GA) (*List[T], error) {
	l, err := listHandle[T](s, at)
	if err == nil {
		err = l.checkExists(ctx)
	}
	if err != nil {
		return nil, s.newError("open", fmt.Sprintf("list of %v at %v", reflect.TypeFor[T](), at), err)
	}
	return l.On(at.Rank()), nil
}

// listHandle returns a handle of the list at an address.
func listHandle[T any](s *Space, at acp.GA) (*List[T], error) {
	c, err := anyCodec[T]()
	return &List[T]{linkedList: linkedList{object{s: s, ga: at, kind: kindList, size: c.size, layout: c.layout}}, codec: c}, cmp.Or(s.checkUsable(), err)
}

// On returns a handle of the same list that allocates new elements at rank. By default they are allocated at
// the rank of the list.
func (l *List[T]) On(rank int) *List[T] {
	on := *l
	on.rank = rank
	return &on
}

// PushBack appends an element, and returns its address (acp_push_back_list).
func (l *List[T]) PushBack(ctx context.Context, v T) (acp.GA, error) {
	at, err := l.insertNode(ctx, l.rank, l.bytesOf(&v), func(*header) (acp.GA, error) { return acp.Null, nil })
	return at, l.newError("push back", err)
}

// PushFront inserts an element before the first one, and returns its address (acp_push_front_list).
func (l *List[T]) PushFront(ctx context.Context, v T) (acp.GA, error) {
	at, err := l.insertNode(ctx, l.rank, l.bytesOf(&v), func(h *header) (acp.GA, error) { return acp.GA(h.words[chainFirst]), nil })
	return at, l.newError("push front", err)
}

// Insert inserts an element before the element next, and returns its address (acp_insert_list).
func (l *List[T]) Insert(ctx context.Context, next acp.GA, v T) (acp.GA, error) {
	at, err := l.insertNode(ctx, l.rank, l.bytesOf(&v), func(*header) (acp.GA, error) { return next, checkElement(next) })
	return at, l.newError("insert", err)
}

// PopBack removes and returns the last element (acp_pop_back_list). It returns ErrEmpty if there is none.
func (l *List[T]) PopBack(ctx context.Context) (T, error) {
	return l.popEnd(ctx, "pop back", chainLast)
}

// PopFront removes and returns the first element (acp_pop_front_list). It returns ErrEmpty if there is none.
func (l *List[T]) PopFront(ctx context.Context) (T, error) {
	return l.popEnd(ctx, "pop front", chainFirst)
}

// popEnd removes the element at one end of the list: chainFirst or chainLast.
func (l *List[T]) popEnd(ctx context.Context, op string, end int) (v T, _ error) {
	b, err := l.removeNode(ctx, func(h *header) (acp.GA, error) {
		if h.length == 0 {
			return acp.Null, ErrEmpty
		}
		return acp.GA(h.words[end]), nil
	})
	if err != nil {
		return v, l.newError(op, err)
	}
	return l.decodeValue(b), nil
}

// Erase removes an element and returns its value (acp_erase_list).
func (l *List[T]) Erase(ctx context.Context, e acp.GA) (v T, _ error) {
	b, err := l.removeNode(ctx, func(*header) (acp.GA, error) { return e, checkElement(e) })
	if err != nil {
		return v, l.newError("erase", err)
	}
	return l.decodeValue(b), nil
}

// Value returns the value of an element (acp_dereference_list_it).
func (l *List[T]) Value(ctx context.Context, e acp.GA) (v T, _ error) {
	err := l.withLock(ctx, func(*header) error {
		n, err := l.loadNode(e)
		if err == nil {
			v = l.decodeValue(n.value)
		}
		return err
	})
	return v, l.newError("value", err)
}

// checkElement returns an error for the null address.
func checkElement(e acp.GA) error {
	if e == acp.Null {
		return fmt.Errorf("%w: %v", ErrElement, e)
	}
	return nil
}

// Element is an element of a list.
type Element[T any] struct {
	At    acp.GA
	Value T
}

// Elements returns an iterator over a snapshot of the elements, in order, with their addresses. An error ends
// the iteration.
func (l *List[T]) Elements(ctx context.Context) iter.Seq2[Element[T], error] {
	return func(yield func(Element[T], error) bool) {
		var nodes []node
		err := l.withLock(ctx, func(h *header) (err error) {
			nodes, err = l.walkNodes(h)
			return err
		})
		if err != nil {
			yield(Element[T]{}, l.newError("all", err))
			return
		}
		for _, n := range nodes {
			if !yield(Element[T]{n.at, l.decodeValue(n.value)}, nil) {
				return
			}
		}
	}
}

// All returns an iterator over a snapshot of the values, in order. An error ends the iteration.
func (l *List[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for e, err := range l.Elements(ctx) {
			if !yield(e.Value, err) {
				return
			}
		}
	}
}

// Clear removes and frees all elements.
func (l *List[T]) Clear(ctx context.Context) error {
	return l.newError("clear", l.withLock(ctx, func(h *header) error { return l.freeNodes(ctx, h) }))
}

// Destroy frees the list and its elements (acp_destroy_list): see Vector.Destroy.
func (l *List[T]) Destroy(ctx context.Context) error {
	return l.newError("destroy", l.destroyList(ctx))
}
