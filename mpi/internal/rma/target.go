package rma

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// Errors of Target, wrapped with the details.
var (
	ErrMalformed = errors.New("rma: malformed request")
	ErrRange     = errors.New("mpi: range outside of the window") // MPI_ERR_RMA_RANGE
)

// A Target is the layout in a window's memory of the elements of a message, in order.
type Target struct {
	Element Element
	Vectors []Vector
}

// An Element is the layout of an element in memory.
type Element struct {
	Size   int     // packed size in bytes
	Extent int     // bytes from one element to the next
	Pieces []Piece // nil is one piece of Size bytes
}

// A Piece is a range of an element.
type Piece = datatype.Piece

// DenseElement returns an element without gaps.
func DenseElement(size int) Element { return Element{Size: size, Extent: size} }

// A Vector is Count blocks of N elements, Stride bytes apart, at byte offset Off of the
// window.
type Vector struct {
	Off, Stride int
	N, Count    int
}

// Encoded sizes in bytes: of the fixed part, of a piece, and of a vector.
const (
	HeaderSize = 12
	pieceSize  = 8
	VectorSize = 24
)

// maxBytes is an upper bound of offsets in a window.
const maxBytes = min(1<<47, math.MaxInt/2)

// EncodedSize returns the encoded size in bytes of a target with a number of vectors.
func (e *Element) EncodedSize(vectors int) int {
	return HeaderSize + len(e.Pieces)*pieceSize + vectors*VectorSize
}

// Append appends the encoding of the target to b.
func (t *Target) Append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(t.Element.Size))
	b = le.AppendUint32(b, uint32(t.Element.Extent))
	b = le.AppendUint16(b, uint16(len(t.Element.Pieces)))
	b = le.AppendUint16(b, uint16(len(t.Vectors)))
	for _, p := range t.Element.Pieces {
		b = le.AppendUint32(b, uint32(p.Off))
		b = le.AppendUint32(b, uint32(p.Len))
	}
	for _, v := range t.Vectors {
		b = le.AppendUint64(b, uint64(v.Off))
		b = le.AppendUint64(b, uint64(v.Stride))
		b = le.AppendUint32(b, uint32(v.N))
		b = le.AppendUint32(b, uint32(v.Count))
	}
	return b
}

// Decode decodes a target from the start of b, and returns the rest of b. It reuses the
// memory of t. The result must be checked by Validate.
func (t *Target) Decode(b []byte) ([]byte, error) {
	le := binary.LittleEndian
	if len(b) < HeaderSize {
		return nil, fmt.Errorf("%w: %d bytes", ErrMalformed, len(b))
	}
	t.Element = Element{Size: int(le.Uint32(b)), Extent: int(le.Uint32(b[4:])), Pieces: t.Element.Pieces[:0]}
	pieces, vectors := int(le.Uint16(b[8:])), int(le.Uint16(b[10:]))
	b = b[HeaderSize:]
	if len(b) < pieces*pieceSize+vectors*VectorSize {
		return nil, fmt.Errorf("%w: %d pieces and %d vectors exceed %d bytes", ErrMalformed, pieces, vectors, len(b))
	}
	for ; pieces > 0; pieces-- {
		t.Element.Pieces = append(t.Element.Pieces, Piece{Off: int(le.Uint32(b)), Len: int(le.Uint32(b[4:]))})
		b = b[pieceSize:]
	}
	t.Vectors = t.Vectors[:0]
	for ; vectors > 0; vectors-- {
		off, stride := le.Uint64(b), le.Uint64(b[8:])
		if off > maxBytes || stride > maxBytes {
			return nil, fmt.Errorf("%w: vector with offset %d, stride %d", ErrMalformed, off, stride)
		}
		t.Vectors = append(t.Vectors, Vector{int(off), int(stride), int(le.Uint32(b[16:])), int(le.Uint32(b[20:]))})
		b = b[VectorSize:]
	}
	return b, nil
}

// Validate returns nil if all elements lie inside of a window of size bytes and have at
// most limit packed bytes.
func (t *Target) Validate(size, limit int) error {
	e := &t.Element
	if e.Size <= 0 || e.Extent < e.Size || e.Extent > maxElement {
		return fmt.Errorf("%w: element of %d bytes, extent %d", ErrMalformed, e.Size, e.Extent)
	}
	sum := 0
	for _, p := range e.Pieces {
		if p.Off < 0 || p.Len <= 0 || p.Len > e.Extent-p.Off {
			return fmt.Errorf("%w: piece of %d bytes at offset %d, extent %d", ErrMalformed, p.Len, p.Off, e.Extent)
		}
		sum += p.Len
	}
	if len(e.Pieces) > 0 && sum != e.Size {
		return fmt.Errorf("%w: pieces of %d bytes in total, element of %d bytes", ErrMalformed, sum, e.Size)
	}
	left, end := limit/e.Size, e.lastByte() // elements
	for _, v := range t.Vectors {
		if v.N <= 0 || v.Count <= 0 || v.N > left || v.Count > left/v.N {
			return fmt.Errorf("%w: %d blocks of %d elements exceed %d bytes", ErrMalformed, v.Count, v.N, limit)
		}
		left -= v.N * v.Count
		room := size - v.Off - end // for all but the last element
		if v.Off < 0 || v.Stride < 0 || room < 0 || v.N-1 > room/e.Extent ||
			v.Count > 1 && v.Stride > (room-(v.N-1)*e.Extent)/(v.Count-1) {
			return fmt.Errorf("%w: %d blocks of %d elements of extent %d, stride %d, offset %d, window of %d bytes",
				ErrRange, v.Count, v.N, e.Extent, v.Stride, v.Off, size)
		}
	}
	return nil
}

// maxElement is the maximum extent of an element in bytes.
const maxElement = 1 << 24

// lastByte returns the offset after the last byte of an element.
func (e *Element) lastByte() int {
	if len(e.Pieces) == 0 {
		return e.Size
	}
	end := 0
	for _, p := range e.Pieces {
		end = max(end, p.Off+p.Len)
	}
	return end
}

// Elements returns the number of elements.
func (t *Target) Elements() int {
	n := 0
	for _, v := range t.Vectors {
		n += v.N * v.Count
	}
	return n
}

// Bytes returns the packed size of the elements.
func (t *Target) Bytes() int { return t.Elements() * t.Element.Size }

// Contiguous returns the range of memory of the elements, if they are contiguous in
// packed order.
func (t *Target) Contiguous() (off, n int, ok bool) {
	if len(t.Vectors) != 1 || t.Vectors[0].Count != 1 || !t.Element.isDense() {
		return 0, 0, false
	}
	return t.Vectors[0].Off, t.Bytes(), true
}

// isDense reports whether elements have no gaps in and between them.
func (e *Element) isDense() bool { return len(e.Pieces) == 0 && e.Size == e.Extent }

// eachPiece calls f for every piece of memory, in order.
func (t *Target) eachPiece(mem []byte, f func(piece []byte)) {
	e := &t.Element
	for _, v := range t.Vectors {
		for i := range v.Count {
			block := mem[v.Off+i*v.Stride:]
			switch {
			case e.isDense():
				f(block[:v.N*e.Size])
			case len(e.Pieces) == 0:
				for j := range v.N {
					f(block[j*e.Extent:][:e.Size])
				}
			default:
				for j := range v.N {
					for _, p := range e.Pieces {
						f(block[j*e.Extent+p.Off:][:p.Len])
					}
				}
			}
		}
	}
}

// Gather packs the elements from a window's memory into dst. Validate has accepted the
// target.
func (t *Target) Gather(dst, mem []byte) {
	t.eachPiece(mem, func(piece []byte) { dst = dst[copy(dst, piece):] })
}

// Scatter unpacks elements from src into a window's memory. Validate has accepted the
// target.
func (t *Target) Scatter(mem, src []byte) {
	t.eachPiece(mem, func(piece []byte) { src = src[copy(piece, src):] })
}
