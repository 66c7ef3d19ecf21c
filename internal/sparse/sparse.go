// Package sparse implements a table by number for states of which few exist, for example those of
// the ranks of a large job that a rank exchanges messages with.
//
//	peers := sparse.Make[peer](ranks)
//	p := peers.Get(7)             // added on first use
//	if p := peers.Find(8); p != nil {
//		...
//	}
package sparse

import "iter"

const (
	pageShift = 4
	pageSize  = 1 << pageShift
)

// A Table has elements by number, which do not move. Besides its elements it takes half a byte a
// number and 128 bytes for each 16 numbers of which one has an element. The zero value is empty.
// It is not safe for concurrent use.
type Table[T any] struct {
	pages []*[pageSize]*T
}

// Make returns an empty table with space for the numbers from 0 to n-1. It grows for others.
func Make[T any](n int) Table[T] {
	return Table[T]{make([]*[pageSize]*T, (n+pageSize-1)/pageSize)}
}

// Find returns the element i, or nil if there is none.
func (t *Table[T]) Find(i int) *T {
	if k := i >> pageShift; k < len(t.pages) && t.pages[k] != nil {
		return t.pages[k][i&(pageSize-1)]
	}
	return nil
}

// Get returns the element i. It adds a zero element if there is none.
func (t *Table[T]) Get(i int) *T {
	if e := t.Find(i); e != nil {
		return e
	}
	return t.add(i)
}

func (t *Table[T]) add(i int) *T {
	k := i >> pageShift
	for k >= len(t.pages) {
		t.pages = append(t.pages, nil)
	}
	if t.pages[k] == nil {
		t.pages[k] = new([pageSize]*T)
	}
	e := new(T)
	t.pages[k][i&(pageSize-1)] = e
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
			if page == nil {
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
