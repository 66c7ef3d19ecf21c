package rma

import (
	"fmt"
	"math"
	"slices"
)

// A Span is a range of a rank's memory.
type Span struct{ Addr, Size uint64 }

// Valid reports whether the span is not empty and does not wrap around.
func (s Span) Valid() bool { return s.Size > 0 && s.Addr <= math.MaxUint64-s.Size }

// End returns the address after the last byte.
func (s Span) End() uint64 { return s.Addr + s.Size }

// Contains reports whether o lies inside of s.
func (s Span) Contains(o Span) bool {
	return o.Addr >= s.Addr && o.Size <= s.Size && o.Addr-s.Addr <= s.Size-o.Size
}

// Overlaps reports whether two Valid spans have a byte in common.
func (s Span) Overlaps(o Span) bool { return s.Addr < o.End() && o.Addr < s.End() }

// String implements fmt.Stringer.
func (s Span) String() string { return fmt.Sprintf("%d bytes from %#x on", s.Size, s.Addr) }

// Spans is a map of disjoint spans to items. The zero value is empty.
type Spans[T any] struct {
	list []spanned[T] // by address
}

type spanned[T any] struct {
	Span
	item T
}

// Len returns the number of spans.
func (l *Spans[T]) Len() int { return len(l.list) }

// searchAbove returns the index of the first span that starts after an address.
func (l *Spans[T]) searchAbove(addr uint64) int {
	i, found := slices.BinarySearchFunc(l.list, addr, func(s spanned[T], addr uint64) int {
		switch {
		case s.Addr < addr:
			return -1
		case s.Addr > addr:
			return 1
		}
		return 0
	})
	if found {
		i++
	}
	return i
}

// FindOverlap returns the first span that overlaps a Valid span.
func (l *Spans[T]) FindOverlap(s Span) (other Span, ok bool) {
	i := l.searchAbove(s.Addr)
	if i > 0 && l.list[i-1].Overlaps(s) {
		return l.list[i-1].Span, true
	}
	if i < len(l.list) && l.list[i].Overlaps(s) {
		return l.list[i].Span, true
	}
	return Span{}, false
}

// Add adds a Valid span. If it overlaps another one, Add returns that one and false.
func (l *Spans[T]) Add(s Span, item T) (other Span, ok bool) {
	if other, ok := l.FindOverlap(s); ok {
		return other, false
	}
	l.list = slices.Insert(l.list, l.searchAbove(s.Addr), spanned[T]{s, item})
	return Span{}, true
}

// Find returns the item of the span that contains s.
func (l *Spans[T]) Find(s Span) (item T, ok bool) {
	if i := l.searchAbove(s.Addr); i > 0 && l.list[i-1].Contains(s) {
		return l.list[i-1].item, true
	}
	return item, false
}

// Remove removes the span that starts at an address, and returns its item.
func (l *Spans[T]) Remove(addr uint64) (item T, ok bool) {
	i := l.searchAbove(addr)
	if i == 0 || l.list[i-1].Addr != addr {
		return item, false
	}
	item = l.list[i-1].item
	l.list = slices.Delete(l.list, i-1, i)
	return item, true
}

// Neighbors returns the last span that starts at or before an address, and the first
// that starts after it, for errors. Either may be zero.
func (l *Spans[T]) Neighbors(addr uint64) (below, above Span) {
	i := l.searchAbove(addr)
	if i > 0 {
		below = l.list[i-1].Span
	}
	if i < len(l.list) {
		above = l.list[i].Span
	}
	return below, above
}
