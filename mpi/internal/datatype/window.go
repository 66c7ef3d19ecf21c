package datatype

import "reflect"

// Raw returns the memory, including padding, of values of any type without pointers,
// for a window. kind is that of an element, or Struct.
func Raw[T any](s []T) (mem []byte, kind Kind, err error) {
	t := reflect.TypeFor[T]()
	if k, ok := basicKind(t); ok {
		return asBytes(s), k, nil
	}
	if l := layoutOf(t, nil); l.err != nil {
		return nil, Struct, l.err
	}
	return asBytes(s), Struct, nil
}

// A Piece is a range of an element, in bytes.
type Piece struct {
	Off int // offset in the element
	Len int
}

// Element returns the layout of an element of the buffer in memory: the distance in
// bytes from one element to the next, and the ranges that belong to the element; nil is
// all bytes.
func (b Buffer) Element() (extent int, pieces []Piece) {
	if b.kind < PairInt16 || b.layout == nil || b.layout.isDense() {
		return b.ElementSize(), nil
	}
	for _, r := range b.layout.runs {
		pieces = append(pieces, Piece{r.off, r.size})
	}
	return b.layout.extent, pieces
}
