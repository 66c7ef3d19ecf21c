package mpi

import (
	"unsafe"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// A Buffer is the memory of a message: elements of one kind, contiguous or in the layout of a
// derived datatype (MPI 4.1, chapter 5). It is a value that refers to the memory and does not
// own it, so it can be made once and used for many messages. The zero Buffer is the empty
// message.
//
// A Buffer with an invalid description has no elements: calls return its Err.
type Buffer struct{ data datatype.Buffer }

// InPlace in place of a buffer means that the data is already in the other one (MPI_IN_PLACE).
var InPlace = Buffer{datatype.InPlace}

// An Element is a basic type of elements (MPI 4.1, 3.2.2).
type Element interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int |
		~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Of returns the buffer of a slice.
func Of[T Element](s []T) Buffer { return Buffer{datatype.Of(s)} }

// Value returns the buffer of one value.
func Value[T Element](p *T) Buffer { return Buffer{datatype.Value(p)} }

// Bytes returns the buffer of uninterpreted bytes (MPI_BYTE). For reductions of numbers use Of,
// whose []byte are numbers of 8 bits; for messages the two are equal.
func Bytes(s []byte) Buffer { return Buffer{datatype.Bytes(s)} }

// Bools returns the buffer of booleans. Received bytes are not checked: a byte other than 0 or
// 1 makes an invalid bool.
func Bools(s []bool) Buffer { return Buffer{datatype.Bools(s)} }

// Strided returns the buffer of count blocks of block elements, whose starts are stride elements
// apart, from the start of s (MPI_Type_vector). A column of a matrix in row order is
// Strided(m[column:], rows, 1, columns).
func Strided[T Element](s []T, count, block, stride int) Buffer {
	return Buffer{datatype.Strided(s, count, block, stride)}
}

// A Block is a range of a slice, in elements.
type Block struct {
	At  int // index of the first element
	Len int
}

// Indexed returns the buffer of some blocks of s, in the order given (MPI_Type_indexed). It does
// not keep blocks.
func Indexed[T Element](s []T, blocks []Block) Buffer { return Buffer{datatype.Indexed(s, blocks)} }

// Structs returns the buffer of values of any type without pointers: of structs, which may
// contain arrays and other structs (MPI_Type_create_struct). Each is one element. Padding and
// fields named _ are not sent. If fields are named, only these are sent, in the order of their
// declaration.
//
// Each call computes the layout, so a buffer that is used often should be made once.
func Structs[T any](s []T, fields ...string) Buffer { return Buffer{datatype.Structs(s, fields...)} }

// A PairValue is a value that MinLoc and MaxLoc compare.
type PairValue interface {
	~int16 | ~int32 | ~int64 | ~int | ~float32 | ~float64
}

// A Pair is a value and its index, for MinLoc and MaxLoc: MPI_FLOAT_INT and similar types (MPI
// 4.1, 6.9.4).
type Pair[V PairValue] struct {
	Value V
	Index int64 // for example a rank or an array index
}

// Pairs returns the buffer of pairs.
func Pairs[V PairValue](s []Pair[V]) Buffer { return Buffer{datatype.Pairs[V](s)} }

// Count returns the number of elements. A struct is one element.
func (b Buffer) Count() int { return b.data.Count() }

// Size returns the packed size of the message in bytes (MPI_Pack_size).
func (b Buffer) Size() int { return b.data.Size() }

// Err returns an ErrBuffer if the buffer is invalid, or nil.
func (b Buffer) Err() error { return b.data.Err() }

// Pack copies the message to dst, as much as fits, and returns the number of bytes (MPI_Pack).
// Packed bytes that are sent as bytes must be received as bytes and copied back by Unpack.
func (b Buffer) Pack(dst []byte) int { return b.data.Pack(dst) }

// Unpack copies a packed message to the buffer's memory and returns the number of bytes
// (MPI_Unpack). A shorter message leaves the rest of the memory unchanged; a longer one is
// truncated.
func (b Buffer) Unpack(src []byte) int { return b.data.Unpack(src) }

// Slice returns the buffer of the elements [from, to), in the same memory.
func (b Buffer) Slice(from, to int) Buffer { return Buffer{b.data.Slice(from, to)} }

// String describes the elements: their number, kind and size.
func (b Buffer) String() string { return b.data.Describe() }

// dataOf returns the data of the buffers of a list, in the memory of the list: a Buffer is nothing
// but its data.
func dataOf(list []Buffer) []datatype.Buffer {
	return unsafe.Slice((*datatype.Buffer)(unsafe.Pointer(unsafe.SliceData(list))), len(list))
}
