// Package sparse implements a table by number for states of which few exist, for example those of
// the ranks of a large job that a rank exchanges messages with.
//
//	peers := sparse.Make[peer](ranks)
//	p := peers.Get(7)             // added on first use
//	if p := peers.Find(8); p != nil {
//		...
//	}
package sparse

import (
	"iter"
	"slices"
)

const (
	pageShift = 4
	pageSize  = 1 << pageShift
)

// A Table has elements by number, which do not move. Besides its elements it takes half a byte a
// number and 128 bytes for each 16 numbers of which one has an element. The zero value is empty.
// It is not safe for concurrent use.
type Table[T any] struct {
	pages []*page[T]
	empty *page[T] // of all numbers of which none has an element
}

type page[T any] [pageSize]*T

// Make returns an empty table with space for the numbers from 0 to n-1. It grows for others.
func Make[T any](n int) (t Table[T]) {
	t.grow(n)
	return t
}

func (t *Table[T]) grow(n int) {
	if t.empty == nil {
		t.empty = new(page[T])
	}
	t.pages = slices.Grow(t.pages, max(0, (n+pageSize-1)>>pageShift-len(t.pages)))
	for len(t.pages)<<pageShift < n {
		t.pages = append(t.pages, t.empty)
	}
}

// Find returns the element i, or nil if there is none.
func (t *Table[T]) Find(i int) *T {
	if k := i >> pageShift; k < len(t.pages) {
		return t.pages[k][i&(pageSize-1)]
	}
	return nil
}

// Get returns the element i. It adds a zero element if there is none.
func (t *Table[T]) Get(i int) *T {
	if k := uint(i) >> pageShift; k < uint(len(t.pages)) {
		if e := t.pages[k][i&(pageSize-1)]; e != nil {
			return e
		}
	}
	return t.add(i)
}

// add is not inlined, so that Get is.
//
//go:noinline
func (t *Table[T]) add(i int) *T {
	t.grow(i + 1)
	p := &t.pages[i>>pageShift]
	if *p == t.empty {
		*p = new(page[T])
	}
	e := new(T)
	(*p)[i&(pageSize-1)] = e
	return e
}

// Remove removes the element i, if there is one.
func (t *Table[T]) Remove(i int) {
	if t.Find(i) != nil {
		t.pages[i>>pageShift][i&(pageSize-1)] = nil
	}
}

// All returns the elements in the order of their numbers.
func (t *Table[T]) All() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for k, page := range t.pages {
			if page == t.empty {
				continue
			}
			for j, e := range page {
				if e != nil && !yield(k<<pageShift|j, e) {
					return
				}
			}
		}
	}
}
