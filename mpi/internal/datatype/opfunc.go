package datatype

import (
	"fmt"
	"reflect"
	"unsafe"
)

// OpFunc returns a user-defined operation (MPI_Op_create): f sets inout[i] = in[i] op
// inout[i]. It must be associative and must not keep the slices, which may be any part
// of a message. If it is not commutative, operands are combined in the order of ranks.
// For a nil f, Valid and Apply return an error.
func OpFunc[T Element](name string, commutative bool, f func(in, inout []T)) Op {
	k := KindOf[T]()
	if f == nil {
		return badOp(name)
	}
	loop := bytesLoop(func(inout, in []T) { f(in, inout) })
	return Op{name: name, code: opUser, commutative: commutative, kind: k, size: k.Size(), apply: loop}
}

// badOp returns an operation whose Valid returns an error about the nil function.
func badOp(name string) Op {
	return Op{name: name, code: opUser, err: fmt.Errorf("%w: %s: nil function", ErrOp, name)}
}

// OpStructs returns a user-defined operation on the elements of a Buffer made by
// Structs[T] without field names. Padding that f sees is undefined. For a T with
// pointers, Valid and Apply return an error.
func OpStructs[T any](name string, commutative bool, f func(in, inout []T)) Op {
	if f == nil {
		return badOp(name)
	}
	l := layoutOf(reflect.TypeFor[T](), nil)
	if l.err != nil {
		return Op{name: name, code: opUser, err: fmt.Errorf("%w: %s: %w", ErrOp, name, l.err)}
	}
	loop := bytesLoop(func(inout, in []T) { f(in, inout) })
	if !l.isDense() {
		loop = func(inout, in []byte) {
			a, b := make([]T, min(copyChunk, len(inout)/l.size)), make([]T, min(copyChunk, len(inout)/l.size))
			for len(inout) > 0 {
				n := Structs(a).Unpack(inout)
				Structs(b).Unpack(in)
				f(b[:n/l.size], a[:n/l.size])
				Structs(a).Pack(inout[:n])
				inout, in = inout[n:], in[n:]
			}
		}
	}
	return Op{name: name, code: opUser, commutative: commutative, kind: Struct, size: l.size, apply: loop}
}

// copyChunk is the number of elements that are copied at a time if they cannot be
// combined in place.
const copyChunk = 256

// bytesLoop converts a loop over elements to one over bytes.
func bytesLoop[T any](loop func(inout, in []T)) func(inout, in []byte) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	return func(inout, in []byte) {
		if size == 0 || len(inout) == 0 {
			return
		}
		if isAligned[T](inout) && isAligned[T](in) {
			loop(asElements[T](inout), asElements[T](in))
			return
		}
		a, b := make([]T, min(copyChunk, len(inout)/size)), make([]T, min(copyChunk, len(inout)/size))
		for len(inout) > 0 {
			n := copy(asBytes(a), inout)
			copy(asBytes(b), in)
			loop(a[:n/size], b[:n/size])
			copy(inout, asBytes(a)[:n])
			inout, in = inout[n:], in[n:]
		}
	}
}

func isAligned[T any](b []byte) bool {
	var zero T
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%unsafe.Alignof(zero) == 0
}

// asElements returns aligned memory as a slice of elements.
func asElements[T any](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}
