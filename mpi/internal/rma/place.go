package rma

import (
	"errors"
	"fmt"
	"math"

	"github.com/softrnic/softrnic/mpi/datatype"
)

// ErrCount is a place for another number of elements than the message has.
var ErrCount = errors.New("place for another number of elements")

// Place is where the elements of a message lie in the window of another rank:
// target displacement, count and datatype of the standard. The zero Place is
// At(0).
type Place struct {
	disp   int // in the units of the target's window
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

// At is a place where elements lie one behind the other, from a displacement on,
// as many as the message has.
func At(disp int) Place { return Place{disp: disp} }

// Strided is a place of count blocks of block elements, whose begins are stride
// elements apart (MPI_Type_vector).
func (p Place) Strided(count, block, stride int) Place {
	p.layout, p.count, p.block, p.stride = strided, count, block, stride
	if count < 0 || block < 0 || stride < 0 {
		p.err = fmt.Errorf("%w: %d blocks of %d, %d apart: none of them may be negative", datatype.ErrLayout, count, block, stride)
	} else if count > 0 && block > math.MaxInt/count {
		p.err = fmt.Errorf("%w: %d blocks of %d are more than there are numbers for", datatype.ErrLayout, count, block)
	}
	p.total = count * block
	return p
}

// Indexed is a place of some blocks, in their order, whose indices count from the
// displacement on (MPI_Type_indexed). It keeps blocks.
func (p Place) Indexed(blocks []datatype.Block) Place {
	p.layout, p.blocks, p.total = indexed, blocks, 0
	for i, b := range blocks {
		if b.At < 0 || b.Len < 0 {
			p.err = fmt.Errorf("%w: block %d: %d elements at %d: neither may be negative", datatype.ErrLayout, i, b.Len, b.At)
			return p
		}
		if p.total += b.Len; p.total < 0 {
			p.err = fmt.Errorf("%w: block %d: there are more elements than there are numbers for", datatype.ErrLayout, i)
			return p
		}
	}
	return p
}

// IsContiguous reports whether the elements lie one behind the other.
func (p *Place) IsContiguous() bool { return p.layout == contiguous }

// Offset is the byte of a window where the place begins, with a displacement unit.
func (p *Place) Offset(unit int) int { return p.disp * unit }

// Blocks is the number of blocks that the elements lie in.
func (p *Place) Blocks() int {
	switch p.layout {
	case strided:
		return p.count
	case indexed:
		return len(p.blocks)
	}
	return 1
}

// Disp is the displacement.
func (p *Place) Disp() int { return p.disp }

// WithDisp is the same place from another displacement on.
func (p Place) WithDisp(disp int) Place {
	p.disp = disp
	return p
}

// Validate is nil if the place is for n elements of an extent, and lies inside of a
// window of size bytes with a displacement unit.
func (p *Place) Validate(n, extent, unit, size int) error {
	if err := p.checkCount(n); err != nil || n == 0 && p.disp >= 0 {
		return err
	}
	if extent <= 0 || unit <= 0 {
		return fmt.Errorf("%w: extent %d, displacement unit %d", ErrRange, extent, unit)
	}
	if p.disp < 0 {
		return fmt.Errorf("%w: displacement %d is negative", ErrRange, p.disp)
	}
	_, end := p.elementRange(n)
	if p.disp > size/unit || end > (size-p.disp*unit)/extent {
		return fmt.Errorf("%w: element %d from displacement %d on, of a window of %d bytes in units of %d", ErrRange, end-1, p.disp, size, unit)
	}
	return nil
}

// Span is where the first of n elements of an extent begins, in bytes from the
// displacement on, and how many bytes there are from there to the end of the last,
// with all gaps.
func (p *Place) Span(n, extent int) (from, size int, err error) {
	if err := p.checkCount(n); err != nil || n == 0 {
		return 0, 0, err
	}
	first, end := p.elementRange(n)
	if extent > 0 && end > math.MaxInt/extent {
		return 0, 0, fmt.Errorf("%w: element %d, of %d bytes", ErrRange, end-1, extent)
	}
	return first * extent, (end - first) * extent, nil
}

// checkCount is nil if the place is for n elements.
func (p *Place) checkCount(n int) error {
	if p.err != nil {
		return p.err
	}
	if p.layout != contiguous && p.total != n {
		return fmt.Errorf("%w: there is room for %d elements, the buffer has %d", ErrCount, p.total, n)
	}
	return nil
}

// elementRange are the first and, and one, the last element of n, the greatest number there
// is if that is beyond all numbers.
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

// String is the place for errors.
func (p Place) String() string {
	switch p.layout {
	case strided:
		return fmt.Sprintf("%d (%d blocks of %d, %d apart)", p.disp, p.count, p.block, p.stride)
	case indexed:
		return fmt.Sprintf("%d (%d blocks)", p.disp, len(p.blocks))
	}
	return fmt.Sprint(p.disp)
}

// Cursor goes through the elements of a place.
type Cursor struct {
	block int // of Strided and Indexed
	skip  int // elements of it
}

// AppendVectors appends vectors for up to n more elements to list, which has room for as
// many as its capacity, and returns how many elements they are for. Fit has been
// nil, for the same extent and unit, and c.Next is never asked for more than there
// are.
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

// appendBlock appends a block of elements, which becomes part of the last vector if it
// can. It reports whether there was room.
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
