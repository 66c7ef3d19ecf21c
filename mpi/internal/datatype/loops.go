package datatype

import (
	"encoding/binary"
	"unsafe"
)

// opLoops has the loop of each predefined operation and kind; nil if the combination is
// undefined (MPI 4.1, section 6.9.2).
var opLoops = buildLoops()

type loopTable [numCodes][numKinds]func(inout, in []byte)

func buildLoops() (t loopTable) {
	addIntegerOps[int8](&t, Int8)
	addIntegerOps[int16](&t, Int16)
	addIntegerOps[int32](&t, Int32)
	addIntegerOps[int64](&t, Int64)
	addIntegerOps[uint8](&t, Uint8)
	addIntegerOps[uint16](&t, Uint16)
	addIntegerOps[uint32](&t, Uint32)
	addIntegerOps[uint64](&t, Uint64)
	addOrderedOps[float32](&t, Float32)
	addOrderedOps[float64](&t, Float64)
	addNumberOps[complex64](&t, Complex64)
	addNumberOps[complex128](&t, Complex128)
	addBitOps[uint8](&t, Byte)
	addLogicalOps[uint8](&t, Bool)
	addPairOps[int16](&t, PairInt16)
	addPairOps[int32](&t, PairInt32)
	addPairOps[int64](&t, PairInt64)
	addPairOps[float32](&t, PairFloat32)
	addPairOps[float64](&t, PairFloat64)
	return t
}

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

type real interface {
	integer | float32 | float64
}

type number interface {
	real | complex64 | complex128
}

func addIntegerOps[T integer](t *loopTable, k Kind) {
	addOrderedOps[T](t, k)
	addLogicalOps[T](t, k)
	addBitOps[T](t, k)
}

func addOrderedOps[T real](t *loopTable, k Kind) {
	addNumberOps[T](t, k)
	t[opMax][k] = bytesLoop(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] = max(inout[i], in[i])
		}
	})
	t[opMin][k] = bytesLoop(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] = min(inout[i], in[i])
		}
	})
}

func addNumberOps[T number](t *loopTable, k Kind) {
	t[opSum][k] = bytesLoop(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] += in[i]
		}
	})
	t[opProd][k] = bytesLoop(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] *= in[i]
		}
	})
}

func addBitOps[T integer](t *loopTable, k Kind) {
	t[opBAnd][k] = bytesLoop(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] &= in[i]
		}
	})
	t[opBOr][k] = bytesLoop(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] |= in[i]
		}
	})
	t[opBXor][k] = bytesLoop(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] ^= in[i]
		}
	})
}

func addLogicalOps[T integer](t *loopTable, k Kind) {
	t[opLAnd][k] = bytesLoop(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] = fromBool[T](inout[i] != 0 && in[i] != 0)
		}
	})
	t[opLOr][k] = bytesLoop(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] = fromBool[T](inout[i] != 0 || in[i] != 0)
		}
	})
	t[opLXor][k] = bytesLoop(func(inout, in []T) {
		in = in[:len(inout)]
		for i := range inout {
			inout[i] = fromBool[T]((inout[i] != 0) != (in[i] != 0))
		}
	})
}

func fromBool[T integer](b bool) T {
	if b {
		return 1
	}
	return 0
}

// addPairOps adds the operations on pairs.
func addPairOps[V int16 | int32 | int64 | float32 | float64](t *loopTable, k Kind) {
	t[opMaxLoc][k] = pairLoop(func(v, w V) bool { return v > w })
	t[opMinLoc][k] = pairLoop(func(v, w V) bool { return v < w })
}

// pairLoop returns a loop over packed, possibly unaligned pairs that keeps the pair
// whose value is before the other. NaN is before all numbers, so that the result does
// not depend on the order.
func pairLoop[V PairValue](before func(v, w V) bool) func(inout, in []byte) {
	const indexSize = 8
	valueSize := int(unsafe.Sizeof(*new(V)))
	return func(inout, in []byte) {
		for at := 0; at < len(inout); at += valueSize + indexSize {
			v, w := loadUnaligned[V](in[at:]), loadUnaligned[V](inout[at:])
			i, j := binary.NativeEndian.Uint64(in[at+valueSize:]), binary.NativeEndian.Uint64(inout[at+valueSize:])
			vNaN, wNaN := v != v, w != w
			switch {
			case vNaN != wNaN:
				if wNaN {
					continue
				}
			case !vNaN && v != w:
				if !before(v, w) {
					continue
				}
			case int64(i) >= int64(j):
				continue
			}
			copy(inout[at:], in[at:][:valueSize+indexSize])
		}
	}
}

// loadUnaligned reads a value from unaligned bytes.
func loadUnaligned[V PairValue](b []byte) (v V) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)), b)
	return v
}
