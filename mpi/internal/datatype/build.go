package datatype

import (
	"cmp"
	"math"
	"slices"
	"unsafe"
)

// asBytes returns the memory of a slice as bytes.
func asBytes[T any](s []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}

// Of returns the buffer of a slice.
func Of[T Element](s []T) Buffer {
	return Buffer{mem: asBytes(s), count: len(s), kind: KindOf[T]()}
}

// Value returns the buffer of one value.
func Value[T Element](p *T) Buffer {
	if p == nil {
		return badBuffer("nil value")
	}
	return Of(unsafe.Slice(p, 1))
}

// Bytes returns the buffer of uninterpreted bytes. For reductions of numbers use Of,
// whose []byte have kind Uint8; for messages the two are equal.
func Bytes(s []byte) Buffer { return Buffer{mem: s, count: len(s), kind: Byte} }

// Bools returns the buffer of booleans. Received bytes are not checked: a byte other
// than 0 or 1 makes an invalid bool.
func Bools(s []bool) Buffer { return Buffer{mem: asBytes(s), count: len(s), kind: Bool} }

// Strided returns the buffer of count blocks of block elements, whose starts are stride
// elements apart, from the start of s (MPI_Type_vector). A column of a matrix in row
// order is Strided(m[column:], rows, 1, columns).
func Strided[T Element](s []T, count, block, stride int) Buffer {
	kind := KindOf[T]()
	switch {
	case count < 0 || block < 0 || stride < 0:
		return badBuffer("strided buffer: count %d, block %d, stride %d: want no negative number", count, block, stride)
	case count == 0 || block == 0:
		return Of(s[:0])
	case block > len(s) || stride > 0 && count-1 > (len(s)-block)/stride:
		return badBuffer("strided buffer: count %d, block %d, stride %d exceed the slice of %d elements", count, block, stride, len(s))
	case count > math.MaxInt/kind.Size()/block: // stride is 0
		return badBuffer("strided buffer: %d blocks of %d %v overflow int", count, block, kind)
	case count == 1 || stride == block:
		return Of(s[:count*block])
	}
	l := layout{extent: stride * kind.Size()}
	l.add(0, block*kind.Size())
	if stride < block {
		l.overlapErr = layoutError("blocks of %d elements with stride %d overlap; send only", block, stride)
	}
	return Buffer{mem: asBytes(s), layout: &l, count: count * block, kind: kind}
}

// A Block is a range of a slice, in elements.
type Block struct {
	At  int // index of the first element
	Len int
}

// Indexed returns the buffer of some blocks of s, in the order given
// (MPI_Type_indexed). It does not keep blocks, which are of type Block or of a type like it.
func Indexed[T Element, B ~struct{ At, Len int }](s []T, blocks []B) Buffer {
	kind := KindOf[T]()
	l := layout{runs: make([]run, 0, len(blocks)), extent: len(s) * kind.Size()}
	for i, like := range blocks {
		b := Block(like)
		switch {
		case b.At < 0 || b.Len < 0:
			return badBuffer("indexed buffer: block %d: length %d, index %d: want no negative number", i, b.Len, b.At)
		case b.Len > len(s) || b.At > len(s)-b.Len:
			return badBuffer("indexed buffer: block %d: length %d, index %d exceed the slice of %d elements", i, b.Len, b.At, len(s))
		case b.Len*kind.Size() > math.MaxInt-l.size:
			return badBuffer("indexed buffer: block %d: size overflows int", i)
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

// findOverlap returns an error that names two blocks with common elements, or nil.
func findOverlap[B ~struct{ At, Len int }](blocks []B) error {
	order := make([]int, 0, len(blocks))
	for i, b := range blocks {
		if Block(b).Len > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(Block(blocks[i]).At, Block(blocks[j]).At) })
	for n := 1; n < len(order); n++ {
		i, j := order[n-1], order[n]
		if a, b := Block(blocks[i]), Block(blocks[j]); a.At+a.Len > b.At {
			return layoutError("blocks %d (%d at %d) and %d (%d at %d) overlap; send only",
				i, a.Len, a.At, j, b.Len, b.At)
		}
	}
	return nil
}
