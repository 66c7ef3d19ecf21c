package isosurface

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// errUnit is wrapped by errors of malformed units.
var errUnit = errors.New("bad unit")

// blockLen is the length of the header of a unit of samples: the first cell
// and the number of cells.
//
//	x (16)  y (16)  z (16)  cells in x (16)  in y (16)  in z (16)
//
// The samples follow, three more than cells in each direction.
const blockLen = 12

// maxBlock is the maximum edge of a block in cells: positions in a block have eight integer
// bits.
const maxBlock = 128

// blockFor returns the edge in cells of the blocks whose samples fill a unit, or 0 if no block
// fits.
func blockFor(unitSize int) int {
	n := 0
	for n < maxBlock && blockLen+(n+4)*(n+4)*(n+4) <= unitSize {
		n++
	}
	return n
}

// parseBlock parses a unit of samples of a volume. The returned samples refer to the unit.
func parseBlock(unit []byte, dims [3]int) (at [3]int, s samples, err error) {
	if len(unit) < blockLen {
		return at, s, fmt.Errorf("%w: %d bytes of samples", errUnit, len(unit))
	}
	n := 1
	for i := range at {
		at[i] = int(binary.BigEndian.Uint16(unit[2*i:]))
		s.cells[i] = int(binary.BigEndian.Uint16(unit[6+2*i:]))
		if s.cells[i] < 1 || s.cells[i] > maxBlock || at[i]+s.cells[i] > dims[i]-1 {
			return at, s, fmt.Errorf("%w: block of %v cells at %v in a volume of %v samples", errUnit, s.cells, at, dims)
		}
		n *= s.cells[i] + 3
	}
	if s.data = unit[blockLen:]; len(s.data) != n {
		return at, s, fmt.Errorf("%w: %d samples, want %d", errUnit, len(s.data), n)
	}
	return at, s, nil
}

// A layer has the samples of all cells in a range of z, including the surrounding samples.
type layer struct {
	volume *Volume
	z      int
	cells  int
	planes []byte // planes z-1 to z+cells+1
}

// readPlanes reads the planes of a range of cells.
func (l *layer) readPlanes(z, cells int) error {
	l.z, l.cells = z, cells
	n := l.volume.dims[0] * l.volume.dims[1]
	if want := n * (cells + 3); len(l.planes) < want {
		l.planes = make([]byte, want)
	}
	for i := range cells + 3 {
		if err := l.volume.readPlane(l.planes[i*n:(i+1)*n], z-1+i); err != nil {
			return err
		}
	}
	return nil
}

// appendBlock appends the unit of a block of cells that starts at (x, y).
func (l *layer) appendBlock(b []byte, x, y, cellsX, cellsY int) []byte {
	for _, n := range []int{x, y, l.z, cellsX, cellsY, l.cells} {
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	}
	width, height := l.volume.dims[0], l.volume.dims[1]
	for z := range l.cells + 3 {
		plane := l.planes[z*width*height:]
		for yy := y - 1; yy < y+cellsY+2; yy++ {
			row := plane[min(max(yy, 0), height-1)*width:][:width]
			for xx := x - 1; xx < x+cellsX+2; xx++ {
				b = append(b, row[min(max(xx, 0), width-1)])
			}
		}
	}
	return b
}
