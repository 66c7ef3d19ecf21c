package osu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/softrnic/softrnic/mpi"
)

// alignedBytes returns n bytes aligned for elements of any type.
func alignedBytes(n int) []byte { return make([]byte, n, (n+7)&^7) }

// bufferOf returns the buffer of elements of type t in b, which must be aligned for the type.
func (t Type) bufferOf(b []byte) mpi.Buffer {
	b = b[:len(b)-len(b)%t.elemSize()]
	switch t {
	case Int:
		return mpi.Of(unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4))
	case Float:
		return mpi.Of(unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4))
	case Long:
		return mpi.Of(unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8))
	}
	return mpi.Of(unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(b))), len(b)))
}

// testElement returns the j-th element that a rank sends in an iteration. Elements are small,
// so that sums are exact, and mostly different at other positions.
func testElement(iteration, rank, j int) int {
	h := uint32(iteration)*2654435761 + uint32(rank)*40503*65599 + uint32(j)*2246822519
	return int((h ^ h>>15) * 2654435761 >> 29)
}

// fillElements writes the elements that a rank sends.
func (t Type) fillElements(b []byte, iteration, rank int) {
	for j := range len(b) / t.elemSize() {
		t.putElement(b, j, testElement(iteration, rank, j))
	}
}

// countWrong returns the number of elements that differ from those that a rank sends.
func (t Type) countWrong(b []byte, iteration, rank int) (wrong int) {
	for j := range len(b) / t.elemSize() {
		if t.getElement(b, j) != testElement(iteration, rank, j) {
			wrong++
		}
	}
	return wrong
}

func (t Type) putElement(b []byte, j, v int) {
	switch t {
	case Int:
		binary.NativeEndian.PutUint32(b[4*j:], uint32(v))
	case Float:
		binary.NativeEndian.PutUint32(b[4*j:], math.Float32bits(float32(v)))
	case Long:
		binary.NativeEndian.PutUint64(b[8*j:], uint64(v))
	default:
		b[j] = byte(v)
	}
}

func (t Type) getElement(b []byte, j int) int {
	switch t {
	case Int:
		return int(int32(binary.NativeEndian.Uint32(b[4*j:])))
	case Float:
		return int(math.Float32frombits(binary.NativeEndian.Uint32(b[4*j:])))
	case Long:
		return int(int64(binary.NativeEndian.Uint64(b[8*j:])))
	}
	return int(int8(b[j]))
}
