package datatype

import (
	"cmp"
	"math"
	"slices"
	"unsafe"
)

// asBytes is a slice as bytes.
func asBytes[T any](s []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}

// Of is the buffer of a slice.
func Of[T Element](s []T) Buffer {
	return Buffer{mem: asBytes(s), count: len(s), kind: KindOf[T]()}
}

// Value is the buffer of one value.
func Value[T Element](p *T) Buffer {
	if p == nil {
		return badBuffer("the value is nil")
	}
	return Of(unsafe.Slice(p, 1))
}

// Bytes is the buffer of bytes that are nothing else. Reductions of numbers are
// for Of, whose []byte are of kind Uint8; for messages the two are the same.
func Bytes(s []byte) Buffer { return Buffer{mem: s, count: len(s), kind: Byte} }

// Bools is the buffer of truth values. It takes the sender's word that each is
// one: a byte that is neither 0 nor 1 makes a bool that is neither.
func Bools(s []bool) Buffer { return Buffer{mem: asBytes(s), count: len(s), kind: Bool} }

// Strided is the buffer of count blocks of block elements, whose begins are
// stride elements apart, from the beginning of s on (MPI_Type_vector). A column of
// a matrix in row order is Strided(m[column:], rows, 1, columns).
func Strided[T Element](s []T, count, block, stride int) Buffer {
	kind := KindOf[T]()
	switch {
	case count < 0 || block < 0 || stride < 0:
		return badBuffer("%d blocks of %d, %d apart: none of them may be negative", count, block, stride)
	case count == 0 || block == 0:
		return Of(s[:0])
	case block > len(s) || stride > 0 && count-1 > (len(s)-block)/stride:
		return badBuffer("%d blocks of %d, %d apart, are beyond the end of %d elements", count, block, stride, len(s))
	case count > math.MaxInt/kind.Size()/block: // stride is 0
		return badBuffer("%d blocks of %d %v are more bytes than there are numbers for", count, block, kind)
	case count == 1 || stride == block:
		return Of(s[:count*block])
	}
	l := layout{extent: stride * kind.Size()}
	l.add(0, block*kind.Size())
	if stride < block {
		l.overlapErr = layoutError("blocks of %d, %d apart, overlap: they can be sent, not received", block, stride)
	}
	return Buffer{mem: asBytes(s), layout: &l, count: count * block, kind: kind}
}

// Block is a piece of a slice, in elements.
type Block struct {
	At  int // the first one's index
	Len int
}

// Indexed is the buffer of some blocks of s, in their order (MPI_Type_indexed).
// It keeps no reference to blocks.
func Indexed[T Element](s []T, blocks []Block) Buffer {
	kind := KindOf[T]()
	l := layout{runs: make([]run, 0, len(blocks)), extent: len(s) * kind.Size()}
	for i, b := range blocks {
		switch {
		case b.At < 0 || b.Len < 0:
			return badBuffer("block %d: %d elements at %d: neither may be negative", i, b.Len, b.At)
		case b.Len > len(s) || b.At > len(s)-b.Len:
			return badBuffer("block %d: %d elements at %d are beyond the end of %d", i, b.Len, b.At, len(s))
		case b.Len*kind.Size() > math.MaxInt-l.size:
			return badBuffer("block %d: there are more bytes than there are numbers for", i)
		}
		l.add(b.At*kind.Size(), b.Len*kind.Size())
	}
	count := l.size / kind.Size()
	if len(l.runs) <= 1 {
		from := 0
		if count > 0 {
			from = l.runs[0].off / kind.Size()
		}
		return Of(s[from:][:count])
	}
	l.overlapErr = findOverlap(blocks)
	return Buffer{mem: asBytes(s), layout: &l, count: count, kind: kind}
}

// findOverlap names two blocks that have elements in common.
func findOverlap(blocks []Block) error {
	order := make([]int, 0, len(blocks))
	for i, b := range blocks {
		if b.Len > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(blocks[i].At, blocks[j].At) })
	for n := 1; n < len(order); n++ {
		i, j := order[n-1], order[n]
		if a, b := blocks[i], blocks[j]; a.At+a.Len > b.At {
			return layoutError("blocks %d (%d at %d) and %d (%d at %d) overlap: they can be sent, not received",
				i, a.Len, a.At, j, b.Len, b.At)
		}
	}
	return nil
}
