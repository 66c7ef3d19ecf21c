package microscope

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
)

// A Spec describes a generated slide: stained tissue with nuclei on glass. Equal specs yield
// equal pixels on every machine.
type Spec struct {
	Seed          uint64
	Width, Height int // of level 0, in pixels; 1 to 2^20
	Tile          int // edge of tiles, in pixels; 1 to 1024
	Levels        int // 1 to 16
}

// SpecFor returns a square slide whose level 0 has about n bytes of pixels, with tiles for
// units of unitSize bytes and three levels.
func SpecFor(n int64, unitSize int) Spec {
	side := max(1, int(math.Sqrt(float64(n)/3)))
	return Spec{Seed: 1, Width: side, Height: side, Tile: TileFor(unitSize), Levels: 3}
}

// TileFor returns the largest edge of tiles that fit into a unit at every stage of the group.
func TileFor(unitSize int) int {
	e := 1
	for e < maxEdge && tileUnit(e+1) <= unitSize {
		e++
	}
	return e
}

// tileUnit returns the size of the unit of an incompressible tile. The overhead of zstd is less
// than 32 bytes for each 128 KiB.
func tileUnit(edge int) int {
	raw := 3 * edge * edge
	return unitHeaderLen + raw + 32*(1+raw>>17)
}

func checkSpec(s Spec) error {
	for _, f := range []struct {
		name    string
		is, max int
	}{{"Width", s.Width, maxSide}, {"Height", s.Height, maxSide}, {"Tile", s.Tile, maxEdge}, {"Levels", s.Levels, maxLevels}} {
		if f.is < 1 || f.is > f.max {
			return fmt.Errorf("%s %d: want 1 to %d", f.name, f.is, f.max)
		}
	}
	return nil
}

// Generate writes a slide in the format of Slide. It keeps level 0 in memory, three bytes for
// each pixel.
func Generate(w io.Writer, spec Spec) error {
	if err := checkSpec(spec); err != nil {
		return fmt.Errorf("microscope: Spec: %w", err)
	}
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	defer zip.Close()
	s := &Slide{width: spec.Width, height: spec.Height, edge: spec.Tile}
	r := paintLevel(spec)
	var index, tile, packed []byte
	for l := range spec.Levels {
		if l > 0 {
			r = r.halveSize()
		}
		grid := s.tileGrid(l)
		for y := range grid.Y {
			for x := range grid.X {
				at := s.tileRect(l, x, y)
				tile = tile[:0]
				for row := at.Min.Y; row < at.Max.Y; row++ {
					tile = append(tile, r.pixelRow(row)[3*at.Min.X:3*at.Max.X]...)
				}
				packed = zip.EncodeAll(tile, packed[:0])
				if _, err := w.Write(packed); err != nil {
					return err
				}
				index = binary.BigEndian.AppendUint32(index, uint32(len(packed)))
			}
		}
	}
	b := append(index, magic...)
	b = binary.BigEndian.AppendUint32(b, uint32(spec.Width))
	b = binary.BigEndian.AppendUint32(b, uint32(spec.Height))
	b = binary.BigEndian.AppendUint16(b, uint16(spec.Tile))
	b = binary.BigEndian.AppendUint16(b, uint16(spec.Levels))
	_, err = w.Write(append(b, 0, 0, 0, 0))
	return err
}

// A raster has RGB pixels.
type raster struct {
	width, height int
	pix           []byte
}

func newRaster(width, height int) *raster {
	return &raster{width, height, make([]byte, 3*width*height)}
}

func (r *raster) pixelRow(y int) []byte { return r.pix[3*r.width*y : 3*r.width*(y+1)] }

// halveSize returns the next level. Each pixel is the mean of four pixels, or of fewer at an
// edge.
func (r *raster) halveSize() *raster {
	h := newRaster(ceilDiv(r.width, 2), ceilDiv(r.height, 2))
	for y := range h.height {
		to := h.pixelRow(y)
		for x := range h.width {
			var sum [3]int
			n := 0
			for yy := 2 * y; yy < min(2*y+2, r.height); yy++ {
				from := r.pixelRow(yy)
				for xx := 2 * x; xx < min(2*x+2, r.width); xx++ {
					for c := range sum {
						sum[c] += int(from[3*xx+c])
					}
					n++
				}
			}
			for c := range sum {
				to[3*x+c] = byte((sum[c] + n/2) / n)
			}
		}
	}
	return h
}
