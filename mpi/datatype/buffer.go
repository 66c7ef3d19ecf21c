package datatype

import "fmt"

// Buffer is the memory of a message: elements of a kind, in a row or as a layout
// has them. It is passed by value, refers to memory that is its caller's, and
// allocates nothing if that is contiguous. The zero Buffer is the empty message.
//
// A Buffer of a bad description has no elements, and an Err that tells why.
type Buffer struct {
	mem    []byte  // without a layout the message, with one all it may touch
	layout *layout // nil: contiguous elements of kind
	from   int     // with a layout: the message's begin in the packed form, in bytes
	count  int     // elements
	kind   Kind
}

// Kind is the kind of the elements.
func (b Buffer) Kind() Kind { return b.kind }

// Count is the number of elements. Of structs each is one.
func (b Buffer) Count() int { return b.count }

// ElementSize is the bytes of an element on the wire.
func (b Buffer) ElementSize() int {
	if b.kind == Struct && b.layout != nil {
		return b.layout.size
	}
	return b.kind.Size()
}

// Size is the bytes of the message on the wire.
func (b Buffer) Size() int { return b.count * b.ElementSize() }

// Err is why the buffer cannot be used, or nil. It is an ErrLayout.
func (b Buffer) Err() error {
	if b.layout == nil {
		return nil
	}
	return b.layout.err
}

// RecvErr is why the buffer cannot receive, or nil: its Err, or that its
// elements overlap, which is allowed in what is sent only (MPI section 5.1.11).
func (b Buffer) RecvErr() error {
	if b.layout == nil || b.layout.err != nil {
		return b.Err()
	}
	return b.layout.overlapErr
}

// Contiguous is the buffer's memory as it goes on the wire, if it lies in one
// piece. It is the caller's memory, not a copy.
func (b Buffer) Contiguous() ([]byte, bool) {
	switch {
	case b.layout == nil:
		return b.mem, true
	case b.layout.isDense():
		return b.mem[b.from:][:b.Size()], true
	}
	return nil, b.count == 0 && b.layout.err == nil
}

// Pack copies the message into dst, as much as fits, and returns how many bytes. Sent as
// bytes, they have to be received as bytes, too, and brought back by Unpack.
func (b Buffer) Pack(dst []byte) int { return b.copyPacked(dst, false) }

// Unpack copies a message into the buffer's memory and returns how many bytes. A
// shorter message leaves what is behind its end as it was, a longer one is cut.
func (b Buffer) Unpack(src []byte) int { return b.copyPacked(src, true) }

// Slice is the buffer of elements from until to, in the same memory.
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

// Describe tells a reader of an error message what the buffer is.
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
