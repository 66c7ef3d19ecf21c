package datatype

import "reflect"

// Raw is the memory of values of any type that has no pointers in it, padding and
// all: a window. Their kind is that of an element, or Struct.
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

// Piece is a part of an element, in bytes.
type Piece struct {
	Off int // in the element
	Len int
}

// Element says how an element of the buffer lies in memory: how many bytes it is
// from one to the next in a slice, and which of them are the element's; nil if all
// are.
func (b Buffer) Element() (extent int, pieces []Piece) {
	if b.kind < PairInt16 || b.layout == nil || b.layout.isDense() {
		return b.ElementSize(), nil
	}
	for _, r := range b.layout.runs {
		pieces = append(pieces, Piece{r.off, r.size})
	}
	return b.layout.extent, pieces
}
