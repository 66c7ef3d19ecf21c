package rma

import (
	"fmt"
	"math"
	"slices"
)

// Span is some bytes of a rank's memory, by their addresses there.
type Span struct{ Addr, Size uint64 }

// Valid reports whether there can be such memory: it has bytes, and their addresses
// do not wrap.
func (s Span) Valid() bool { return s.Size > 0 && s.Addr <= math.MaxUint64-s.Size }

// End is the address behind the last byte.
func (s Span) End() uint64 { return s.Addr + s.Size }

// Contains reports whether all of o lies in s.
func (s Span) Contains(o Span) bool {
	return o.Addr >= s.Addr && o.Size <= s.Size && o.Addr-s.Addr <= s.Size-o.Size
}

// Overlaps reports whether two spans, which are Valid, have a byte in common.
func (s Span) Overlaps(o Span) bool { return s.Addr < o.End() && o.Addr < s.End() }

func (s Span) String() string { return fmt.Sprintf("%d bytes from %#x on", s.Size, s.Addr) }

// Spans are spans that do not overlap, with something that is known of each. The
// zero Spans is none.
type Spans[T any] struct {
	list []spanned[T] // by address
}

type spanned[T any] struct {
	Span
	item T
}

// Len is their number.
func (l *Spans[T]) Len() int { return len(l.list) }

// searchAbove is the first that begins behind an address.
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

// FindOverlap returns the first one that a Valid span overlaps.
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

// Add adds a Valid span, unless there is an Overlap, which is returned then.
func (l *Spans[T]) Add(s Span, item T) (other Span, ok bool) {
	if other, ok := l.FindOverlap(s); ok {
		return other, false
	}
	l.list = slices.Insert(l.list, l.searchAbove(s.Addr), spanned[T]{s, item})
	return Span{}, true
}

// Find returns the one that all of s lies in.
func (l *Spans[T]) Find(s Span) (item T, ok bool) {
	if i := l.searchAbove(s.Addr); i > 0 && l.list[i-1].Contains(s) {
		return l.list[i-1].item, true
	}
	return item, false
}

// Remove removes the one that begins at an address, and returns it.
func (l *Spans[T]) Remove(addr uint64) (item T, ok bool) {
	i := l.searchAbove(addr)
	if i == 0 || l.list[i-1].Addr != addr {
		return item, false
	}
	item = l.list[i-1].item
	l.list = slices.Delete(l.list, i-1, i)
	return item, true
}

// Neighbors returns the last that begins at an address or before, and the first that
// begins behind it, as far as there are such: for errors.
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
