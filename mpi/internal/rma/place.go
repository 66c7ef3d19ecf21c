package rma

import (
	"fmt"
	"math"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// A Place is the layout of the elements of a message in the window of another rank:
// target displacement, count and datatype of the standard. The zero Place is At(0).
type Place struct {
	disp   int // in displacement units of the window
	layout layout
	count  int // blocks
	block  int // elements
	stride int // elements
	blocks []datatype.Block
	total  int // elements
	err    error
}

type layout uint8

const (
	contiguous layout = iota
	strided
	indexed
)

// At returns a contiguous place at a displacement, for any number of elements.
func At(disp int) Place { return Place{disp: disp} }

// Strided returns a place of count blocks of block elements, whose starts are stride
// elements apart (MPI_Type_vector).
func (p Place) Strided(count, block, stride int) Place {
	p.layout, p.count, p.block, p.stride = strided, count, block, stride
	if count < 0 || block < 0 || stride < 0 {
		p.err = fmt.Errorf("%w: strided place: count %d, block %d, stride %d: want no negative number", datatype.ErrLayout, count, block, stride)
	} else if count > 0 && block > math.MaxInt/count {
		p.err = fmt.Errorf("%w: strided place: %d blocks of %d elements overflow int", datatype.ErrLayout, count, block)
	}
	p.total = count * block
	return p
}

// Indexed returns a place of blocks whose indices count from the displacement
// (MPI_Type_indexed). It keeps blocks.
func (p Place) Indexed(blocks []datatype.Block) Place {
	p.layout, p.blocks, p.total = indexed, blocks, 0
	for i, b := range blocks {
		if b.At < 0 || b.Len < 0 {
			p.err = fmt.Errorf("%w: indexed place: block %d: length %d, index %d: want no negative number", datatype.ErrLayout, i, b.Len, b.At)
			return p
		}
		if p.total += b.Len; p.total < 0 {
			p.err = fmt.Errorf("%w: indexed place: block %d: number of elements overflows int", datatype.ErrLayout, i)
			return p
		}
	}
	return p
}

// IsContiguous reports whether the elements are contiguous.
func (p *Place) IsContiguous() bool { return p.layout == contiguous }

// Offset returns the byte offset of the place in the window, for a displacement unit.
func (p *Place) Offset(unit int) int { return p.disp * unit }

// Blocks returns the number of blocks.
func (p *Place) Blocks() int {
	switch p.layout {
	case strided:
		return p.count
	case indexed:
		return len(p.blocks)
	}
	return 1
}

// Disp returns the displacement.
func (p *Place) Disp() int { return p.disp }

// WithDisp returns the place at another displacement.
func (p Place) WithDisp(disp int) Place {
	p.disp = disp
	return p
}

// Validate returns nil if the place has n elements of an extent, and lies inside of a
// window of size bytes with a displacement unit.
func (p *Place) Validate(n, extent, unit, size int) error {
	if err := p.checkCount(n); err != nil || n == 0 && p.disp >= 0 {
		return err
	}
	if extent <= 0 || unit <= 0 {
		return fmt.Errorf("%w: extent %d, displacement unit %d", ErrRange, extent, unit)
	}
	if p.disp < 0 {
		return fmt.Errorf("%w: negative displacement %d", ErrRange, p.disp)
	}
	_, end := p.elementRange(n)
	if p.disp > size/unit || end > (size-p.disp*unit)/extent {
		return fmt.Errorf("%w: element %d at displacement %d, window of %d bytes in units of %d", ErrRange, end-1, p.disp, size, unit)
	}
	return nil
}

// Span returns the offset in bytes of the first of n elements of an extent from the
// displacement, and the number of bytes from there to the end of the last element,
// including gaps.
func (p *Place) Span(n, extent int) (from, size int, err error) {
	if err := p.checkCount(n); err != nil || n == 0 {
		return 0, 0, err
	}
	first, end := p.elementRange(n)
	if extent > 0 && end > math.MaxInt/extent {
		return 0, 0, fmt.Errorf("%w: element %d of %d bytes overflows int", ErrRange, end-1, extent)
	}
	return first * extent, (end - first) * extent, nil
}

// checkCount returns nil if the place has n elements.
func (p *Place) checkCount(n int) error {
	if p.err != nil {
		return p.err
	}
	if p.layout != contiguous && p.total != n {
		return fmt.Errorf("%w: %d elements, buffer has %d", datatype.ErrCount, p.total, n)
	}
	return nil
}

// elementRange returns the index of the first element and the index after the last one
// of n elements, capped at math.MaxInt.
func (p *Place) elementRange(n int) (first, end int) {
	switch p.layout {
	case strided:
		if p.stride > 0 && p.count-1 > (math.MaxInt-p.block)/p.stride {
			return 0, math.MaxInt
		}
		return 0, (p.count-1)*p.stride + p.block
	case indexed:
		first = math.MaxInt
		for _, b := range p.blocks {
			if b.Len > 0 {
				first, end = min(first, b.At), max(end, b.At+min(b.Len, math.MaxInt-b.At))
			}
		}
		return first, end
	}
	return 0, n
}

// String returns a description of the place for errors.
func (p Place) String() string {
	switch p.layout {
	case strided:
		return fmt.Sprintf("%d (%d blocks of %d, %d apart)", p.disp, p.count, p.block, p.stride)
	case indexed:
		return fmt.Sprintf("%d (%d blocks)", p.disp, len(p.blocks))
	}
	return fmt.Sprint(p.disp)
}

// A Cursor is a position in the elements of a place.
type Cursor struct {
	block int // of Strided and Indexed
	skip  int // elements of the block already visited
}

// AppendVectors appends vectors for up to n more elements to list, within its capacity,
// and returns the number of elements covered. Validate has accepted the place with the
// same extent and unit, and n is at most the number of elements left.
func (p *Place) AppendVectors(c *Cursor, list []Vector, n, extent, unit int) ([]Vector, int) {
	done := 0
	for done < n {
		at, block := c.skip, n-done
		switch p.layout {
		case strided:
			if p.block == 0 {
				return list, done
			}
			at, block = c.block*p.stride+c.skip, p.block-c.skip
		case indexed:
			at, block = p.blocks[c.block].At+c.skip, p.blocks[c.block].Len-c.skip
		}
		take := min(block, n-done)
		if take > 0 {
			var ok bool
			if list, ok = appendBlock(list, p.disp*unit+at*extent, take, extent); !ok {
				break
			}
		}
		done += take
		if c.skip += take; p.layout != contiguous && take == block {
			c.block, c.skip = c.block+1, 0
		}
	}
	return list, done
}

// appendBlock appends a block of elements, merged into the last vector if possible. It
// reports whether there was room.
func appendBlock(list []Vector, off, n, extent int) ([]Vector, bool) {
	if len(list) > 0 {
		v := &list[len(list)-1]
		switch {
		case v.Count == 1 && v.Off+v.N*extent == off:
			v.N += n
			return list, true
		case v.N == n && v.Count == 1 && off >= v.Off:
			v.Stride, v.Count = off-v.Off, 2
			return list, true
		case v.N == n && v.Count > 1 && off == v.Off+v.Count*v.Stride:
			v.Count++
			return list, true
		}
	}
	if len(list) == cap(list) {
		return list, false
	}
	return append(list, Vector{Off: off, N: n, Count: 1}), true
}
