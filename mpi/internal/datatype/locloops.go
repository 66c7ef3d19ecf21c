package datatype

import (
	"encoding/binary"
	"unsafe"
)

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
