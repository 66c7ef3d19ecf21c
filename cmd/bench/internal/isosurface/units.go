package isosurface

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/datacutter"
)

// A unit of triangles begins with the first cell of their block,
//
//	x (16)  y (16)  z (16)
//
// Each triangle is three vertices of six 16-bit numbers: the position relative to
// the cell, and the normal. A unit of pixels is a sequence of runs,
//
//	x (16)  y (16)  pixels (16)
//
// Each pixel has 24 bits of depth and 24 bits of colour.
const (
	originLen   = 6
	vertexLen   = 12
	triangleLen = 3 * vertexLen
	runLen      = 6
)

// A packer fills units with records and sends full units.
type packer struct {
	out  *datacutter.Output
	unit []byte
	head int // length of the header of every unit
	key  uint64
}

// ensureRoom makes room for n more bytes in the unit. It sends a full unit.
func (p *packer) ensureRoom(n int) error {
	if len(p.unit)+n > p.out.UnitSize() {
		return p.flushUnit()
	}
	return nil
}

// flushUnit sends the unit, unless it is empty, and starts a new one with the same header.
func (p *packer) flushUnit() error {
	if len(p.unit) == p.head {
		return nil
	}
	p.key++
	err := p.out.SendKey(p.key, p.unit)
	p.unit = p.unit[:p.head]
	return err
}

// appendTriangle appends a triangle to a unit.
func appendTriangle(b []byte, t *triangle) []byte {
	for i := range t {
		for _, n := range t[i].at {
			b = binary.BigEndian.AppendUint16(b, uint16(n))
		}
		for _, n := range t[i].normal {
			b = binary.BigEndian.AppendUint16(b, uint16(n))
		}
	}
	return b
}

// eachTriangle decodes the triangles of a unit, one after the other into t, and calls f. It
// returns an error if a vertex is outside of the volume. Positions are relative to the volume.
func eachTriangle(unit []byte, dims [3]int, t *triangle, f func() error) error {
	if len(unit) < originLen || (len(unit)-originLen)%triangleLen != 0 {
		return fmt.Errorf("%w: %d bytes of triangles", errUnit, len(unit))
	}
	var origin [3]int32
	for i := range origin {
		origin[i] = int32(binary.BigEndian.Uint16(unit[2*i:])) << 8
	}
	for b := unit[originLen:]; len(b) > 0; {
		for i := range t {
			for j := range origin {
				t[i].at[j] = origin[j] + int32(binary.BigEndian.Uint16(b[2*j:]))
				t[i].normal[j] = int16(binary.BigEndian.Uint16(b[6+2*j:]))
				if int(t[i].at[j]) > (dims[j]-1)<<8 {
					return fmt.Errorf("%w: vertex at %v in a volume of %v samples", errUnit, t[i].at, dims)
				}
			}
			b = b[vertexLen:]
		}
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// appendRun appends a run of adjacent pixels.
func appendRun(b []byte, x, y int, run []pixel) []byte {
	for _, n := range []int{x, y, len(run)} {
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	}
	for _, p := range run {
		b = binary.BigEndian.AppendUint16(b, uint16(p>>32))
		b = binary.BigEndian.AppendUint32(b, uint32(p))
	}
	return b
}

// putRuns merges the pixels of a unit into a frame.
func (f *frame) putRuns(b []byte) error {
	for len(b) > 0 {
		if len(b) < runLen {
			return fmt.Errorf("%w: run of pixels: %d bytes", errUnit, len(b))
		}
		x, y, n := int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:])), int(binary.BigEndian.Uint16(b[4:]))
		b = b[runLen:]
		if n < 1 || x+n > f.size || y >= f.size || len(b) < n*pixelLen {
			return fmt.Errorf("%w: run of %d pixels at (%d, %d) in an image of size %d: %d bytes", errUnit, n, x, y, f.size, len(b))
		}
		to := f.pixels[y*f.size+x:][:n]
		for i := range to {
			p := pixel(binary.BigEndian.Uint16(b))<<32 | pixel(binary.BigEndian.Uint32(b[2:]))
			to[i] = min(to[i], p)
			b = b[pixelLen:]
		}
	}
	return nil
}

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
