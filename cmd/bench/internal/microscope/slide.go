package microscope

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
)

// ErrSlide is wrapped by errors of malformed slide files.
var ErrSlide = errors.New("microscope: bad slide")

// A Slide is a digitized slide. Level 0 has the full resolution, and each level halves
// it. Levels are divided into square tiles, which are clipped at the right and bottom
// edge. A tile has its RGB pixels, row by row, compressed with zstd.
//
// The file has the tiles of level 0, row by row, then those of level 1, and so
// on; the length of each in 32 bits, in the same order; and a trailer:
//
//	"DCSLIDE1"  width (32)  height (32)  tile edge (16)  levels (16)  0 (32)
//
// Integers are big-endian.
type Slide struct {
	file          io.ReaderAt
	width, height int // of level 0, in pixels
	edge          int // of tiles, in pixels
	offsets       [][]int64
	longest       int // size of the largest compressed tile in bytes
}

const (
	magic      = "DCSLIDE1"
	trailerLen = 24
	maxEdge    = 1024
	maxLevels  = 16
	maxSide    = 1 << 20
	maxTiles   = 1 << 28
)

// Open parses the trailer and the tile lengths of a slide. The slide keeps using file.
func Open(file io.ReaderAt, size int64) (*Slide, error) {
	b := make([]byte, trailerLen)
	if _, err := file.ReadAt(b, size-trailerLen); size < trailerLen || err != nil {
		return nil, fmt.Errorf("%w: file of %d bytes: no trailer", ErrSlide, size)
	}
	if string(b[:8]) != magic || binary.BigEndian.Uint32(b[20:]) != 0 {
		return nil, fmt.Errorf("%w: bad magic in trailer", ErrSlide)
	}
	s := &Slide{
		file:  file,
		width: int(min(binary.BigEndian.Uint32(b[8:]), maxSide+1)), height: int(min(binary.BigEndian.Uint32(b[12:]), maxSide+1)),
		edge: int(binary.BigEndian.Uint16(b[16:])),
	}
	levels := int(binary.BigEndian.Uint16(b[18:]))
	if err := checkSpec(Spec{Width: s.width, Height: s.height, Tile: s.edge, Levels: levels}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSlide, err)
	}
	var tiles int64
	for l := range levels {
		grid := s.tileGrid(l)
		tiles += int64(grid.X) * int64(grid.Y)
	}
	if tiles > min((size-trailerLen)/4, maxTiles) {
		return nil, fmt.Errorf("%w: %d tiles in %d bytes", ErrSlide, tiles, size)
	}
	index := make([]byte, 4*tiles)
	if _, err := file.ReadAt(index, size-trailerLen-4*tiles); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSlide, err)
	}
	var at int64
	for l := range levels {
		grid := s.tileGrid(l)
		offsets := make([]int64, grid.X*grid.Y+1)
		for i := range grid.X * grid.Y {
			n := binary.BigEndian.Uint32(index)
			index = index[4:]
			offsets[i] = at
			at += int64(n)
			s.longest = max(s.longest, int(min(n, 1<<30)))
		}
		offsets[len(offsets)-1] = at
		s.offsets = append(s.offsets, offsets)
	}
	if at != size-trailerLen-4*tiles {
		return nil, fmt.Errorf("%w: tiles of %d bytes, want %d", ErrSlide, at, size-trailerLen-4*tiles)
	}
	return s, nil
}

// NewSlide generates a slide in memory.
func NewSlide(spec Spec) (*Slide, error) {
	var b bytes.Buffer
	if err := Generate(&b, spec); err != nil {
		return nil, err
	}
	return Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
}

// Bounds returns the rectangle of level 0, in pixels.
func (s *Slide) Bounds() image.Rectangle { return image.Rect(0, 0, s.width, s.height) }

// Levels returns the number of levels.
func (s *Slide) Levels() int { return len(s.offsets) }

// levelSize returns the size of a level in pixels.
func (s *Slide) levelSize(level int) image.Point {
	return image.Pt(ceilDiv(s.width, 1<<level), ceilDiv(s.height, 1<<level))
}

// tileGrid returns the number of tiles of a level in each direction.
func (s *Slide) tileGrid(level int) image.Point {
	size := s.levelSize(level)
	return image.Pt(ceilDiv(size.X, s.edge), ceilDiv(size.Y, s.edge))
}

// tileRect returns the rectangle of a tile in its level.
func (s *Slide) tileRect(level, x, y int) image.Rectangle {
	size := s.levelSize(level)
	return image.Rect(x*s.edge, y*s.edge, min((x+1)*s.edge, size.X), min((y+1)*s.edge, size.Y))
}

// appendTile appends a compressed tile.
func (s *Slide) appendTile(b []byte, level, x, y int) ([]byte, error) {
	i := y*s.tileGrid(level).X + x
	from, to := s.offsets[level][i], s.offsets[level][i+1]
	n := len(b)
	b = append(b, make([]byte, to-from)...)
	if _, err := s.file.ReadAt(b[n:], from); err != nil {
		return nil, fmt.Errorf("microscope: read tile (%d, %d) of level %d: %w", x, y, level, err)
	}
	return b, nil
}

// ceilDiv returns a/b, rounded up.
func ceilDiv(a, b int) int { return (a + b - 1) / b }
