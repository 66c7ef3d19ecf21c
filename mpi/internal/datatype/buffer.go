package datatype

import (
	"fmt"
	"reflect"
)

// A Buffer is the memory of a message: elements of a kind, contiguous or in a layout.
// It is passed by value, refers to memory of the caller, and allocates nothing if that
// is contiguous. The zero Buffer is the empty message.
//
// A Buffer with an invalid description has no elements; Err returns the cause.
type Buffer struct {
	mem    []byte  // the message; with a layout, all memory it may access
	layout *layout // nil: contiguous elements of kind
	from   int     // with a layout: offset of the message in packed form, in bytes
	count  int     // elements
	kind   Kind
}

// Kind returns the kind of the elements.
func (b Buffer) Kind() Kind { return b.kind }

// Count returns the number of elements. A struct is one element.
func (b Buffer) Count() int { return b.count }

// ElementSize returns the packed size of an element in bytes.
func (b Buffer) ElementSize() int {
	if b.kind == Struct && b.layout != nil {
		return b.layout.size
	}
	return b.kind.Size()
}

// Size returns the packed size of the message in bytes.
func (b Buffer) Size() int { return b.count * b.ElementSize() }

// Err returns an ErrLayout if the buffer is invalid, or nil.
func (b Buffer) Err() error {
	if b.layout == nil {
		return nil
	}
	return b.layout.err
}

// RecvErr returns an error if the buffer cannot receive: Err, or that its elements
// overlap, which is allowed for sends only (MPI 4.1, section 5.1.11).
func (b Buffer) RecvErr() error {
	if b.layout == nil || b.layout.err != nil {
		return b.Err()
	}
	return b.layout.overlapErr
}

// InPlace in place of a buffer means that the data is already in the other one
// (MPI_IN_PLACE).
var InPlace = Bytes(inPlaceMarker[:])

var inPlaceMarker [1]byte

// IsInPlace reports whether the buffer is InPlace.
func (b Buffer) IsInPlace() bool {
	mem, ok := b.Contiguous()
	return ok && len(mem) == 1 && &mem[0] == &inPlaceMarker[0]
}

// Check returns an ErrLayout if the buffer is invalid, or if it is InPlace. If it receives,
// its elements must not overlap (RecvErr).
func (b Buffer) Check(receives bool) error {
	err := b.Err()
	if receives {
		err = b.RecvErr()
	}
	if err == nil && b.IsInPlace() {
		err = fmt.Errorf("%w: InPlace not allowed for this buffer", ErrLayout)
	}
	return err
}

// Contiguous returns the buffer's memory in packed form, if it is contiguous. The
// result is not a copy.
func (b Buffer) Contiguous() ([]byte, bool) {
	switch {
	case b.layout == nil:
		return b.mem, true
	case b.layout.isDense():
		return b.mem[b.from:][:b.Size()], true
	}
	return nil, b.count == 0 && b.layout.err == nil
}

// Pack copies the message to dst, as much as fits, and returns the number of bytes.
// Packed bytes that are sent as bytes must be received as bytes and copied back by
// Unpack.
func (b Buffer) Pack(dst []byte) int { return b.copyPacked(dst, false) }

// Unpack copies a packed message to the buffer's memory and returns the number of
// bytes. A shorter message leaves the rest of the memory unchanged; a longer one is
// truncated.
func (b Buffer) Unpack(src []byte) int { return b.copyPacked(src, true) }

// Slice returns the buffer of the elements [from, to), in the same memory.
func (b Buffer) Slice(from, to int) Buffer {
	if b.Err() != nil {
		return b
	}
	if from < 0 || from > to || to > b.count {
		return badBuffer("elements [%d, %d) of %d", from, to, b.count)
	}
	if b.layout == nil {
		b.mem = b.mem[from*b.kind.Size() : to*b.kind.Size()]
	} else {
		b.from += from * b.ElementSize()
	}
	b.count = to - from
	return b
}

// Describe returns a description of the buffer for errors.
func (b Buffer) Describe() string {
	l := b.layout
	switch {
	case l == nil:
		return fmt.Sprintf("%d %v (%d bytes)", b.count, b.kind, b.Size())
	case l.err != nil:
		return l.err.Error()
	case b.kind == Struct:
		return fmt.Sprintf("%d %s (%d bytes, %d of each %d)", b.count, l.name, b.Size(), l.size, l.extent)
	case len(l.runs) == 1:
		return fmt.Sprintf("%d %v (%d bytes in pieces of %d, %d apart)", b.count, b.kind, b.Size(), l.size, l.extent)
	}
	return fmt.Sprintf("%d %v (%d bytes in %d pieces)", b.count, b.kind, b.Size(), len(l.runs)*(b.Size()/max(1, l.size)))
}

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
