package datatype

import (
	"fmt"
	"reflect"
	"unsafe"
)

// OpFunc is an operation of the user's (MPI_Op_create): f makes each element of
// inout the combination of that of in, on the left, and itself, on the right. It
// has to be associative, and must not keep the slices, which may be any part of a
// message. If it is not commutative operands come in the order of the ranks. Of a
// nil f Valid and Apply are errors.
func OpFunc[T Element](name string, commutative bool, f func(in, inout []T)) Op {
	k := KindOf[T]()
	if f == nil {
		return badOp(name)
	}
	loop := bytesLoop(func(inout, in []T) { f(in, inout) })
	return Op{name: name, code: opUser, commutative: commutative, kind: k, size: k.Size(), apply: loop}
}

// badOp returns an operation without a function, whose Valid tells so.
func badOp(name string) Op {
	return Op{name: name, code: opUser, err: fmt.Errorf("%w: %s: the function is nil", ErrOp, name)}
}

// OpStructs is an operation of the user's on the elements of a Buffer that
// Structs[T] made without naming fields. What f sees of padding is anything. For a
// T with pointers Valid and Apply are errors.
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

// copyChunk is how many elements are copied at a time where they cannot be combined
// in place.
const copyChunk = 256

// bytesLoop makes a loop over elements one over bytes.
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

// asElements is an aligned piece of memory as what it is made of.
func asElements[T any](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}
