package datatype

import (
	"reflect"
	"unsafe"
)

// A PairValue is a value that MinLoc and MaxLoc compare.
type PairValue interface {
	~int16 | ~int32 | ~int64 | ~int | ~float32 | ~float64
}

// A Pair is a value and its index, for MinLoc and MaxLoc: MPI_FLOAT_INT and similar
// types (MPI 4.1, section 6.9.4).
type Pair[V PairValue] struct {
	Value V
	Index int64 // for example a rank or an array index
}

// Pairs returns the buffer of values of type Pair[V], or of a type like it. Its kind is one of
// PairInt16 to PairFloat64.
func Pairs[V PairValue, P ~struct {
	Value V
	Index int64
}](s []P) Buffer {
	value, _ := basicKind(reflect.TypeFor[V]())
	b := Buffer{mem: asBytes(s), count: len(s), kind: pairKind(value)}
	var p Pair[V]
	if unsafe.Sizeof(p) != uintptr(b.kind.Size()) {
		var l layout
		l.add(0, int(unsafe.Sizeof(p.Value)))
		l.add(int(unsafe.Offsetof(p.Index)), int(unsafe.Sizeof(p.Index)))
		l.extent = int(unsafe.Sizeof(p))
		b.layout = &l
	}
	return b
}

// pairKind returns the kind of a pair by the kind of its value.
func pairKind(value Kind) Kind {
	switch value {
	case Int16:
		return PairInt16
	case Int32:
		return PairInt32
	case Int64:
		return PairInt64
	case Float32:
		return PairFloat32
	}
	return PairFloat64
}
