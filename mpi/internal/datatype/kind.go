package datatype

import (
	"fmt"
	"reflect"
)

// A Kind is the type of an element (MPI 4.1, section 3.2.2).
type Kind uint8

// The kinds. The zero value is the kind of the empty message. Go's int and uint are Int64
// and Uint64, or Int32 and Uint32 on 32-bit machines.
const (
	Byte Kind = iota // eight uninterpreted bits
	Bool             // one byte, 0 or 1
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	Complex64
	Complex128
	PairInt16   // Pair[int16]
	PairInt32   // Pair[int32]
	PairInt64   // Pair[int64]
	PairFloat32 // Pair[float32]
	PairFloat64 // Pair[float64]
	Struct      // any other type; described by the Buffer
	numKinds
)

var kindInfo = [numKinds]struct {
	name string
	size int
}{
	Byte:        {"byte", 1},
	Bool:        {"bool", 1},
	Int8:        {"int8", 1},
	Int16:       {"int16", 2},
	Int32:       {"int32", 4},
	Int64:       {"int64", 8},
	Uint8:       {"uint8", 1},
	Uint16:      {"uint16", 2},
	Uint32:      {"uint32", 4},
	Uint64:      {"uint64", 8},
	Float32:     {"float32", 4},
	Float64:     {"float64", 8},
	Complex64:   {"complex64", 8},
	Complex128:  {"complex128", 16},
	PairInt16:   {"int16-index", 2 + 8},
	PairInt32:   {"int32-index", 4 + 8},
	PairInt64:   {"int64-index", 8 + 8},
	PairFloat32: {"float32-index", 4 + 8},
	PairFloat64: {"float64-index", 8 + 8},
	Struct:      {"struct", 0},
}

// String returns the kind's name.
func (k Kind) String() string {
	if k < numKinds {
		return kindInfo[k].name
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Size returns the packed size of an element in bytes; 0 for Struct, whose size depends
// on the Buffer.
func (k Kind) Size() int {
	if k < numKinds {
		return kindInfo[k].size
	}
	return 0
}

// An Element is a basic type of elements.
type Element interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int |
		~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// KindOf returns the kind of a type.
func KindOf[T Element]() Kind {
	k, _ := basicKind(reflect.TypeFor[T]())
	return k
}

// basicKind returns the kind of a type that is not composite.
func basicKind(t reflect.Type) (k Kind, ok bool) {
	switch t.Kind() {
	case reflect.Bool:
		return Bool, true
	case reflect.Int8:
		return Int8, true
	case reflect.Int16:
		return Int16, true
	case reflect.Int32:
		return Int32, true
	case reflect.Int64:
		return Int64, true
	case reflect.Int:
		return intKind, true
	case reflect.Uint8:
		return Uint8, true
	case reflect.Uint16:
		return Uint16, true
	case reflect.Uint32:
		return Uint32, true
	case reflect.Uint64:
		return Uint64, true
	case reflect.Uint:
		return intKind + Uint64 - Int64, true
	case reflect.Float32:
		return Float32, true
	case reflect.Float64:
		return Float64, true
	case reflect.Complex64:
		return Complex64, true
	case reflect.Complex128:
		return Complex128, true
	}
	return Byte, false
}

// intKind is the kind of int on this machine: Int32 or Int64.
const intKind = Int32 + (Int64-Int32)*Kind(^uint(0)>>63)
