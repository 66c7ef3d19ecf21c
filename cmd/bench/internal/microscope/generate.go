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

// Slides are computed with integers only, so that they are the same on every machine.

// hashPoint returns a pseudo-random number for a point of a grid.
func hashPoint(seed uint64, x, y int) uint32 {
	h := seed ^ uint64(uint32(x))*0x9E3779B97F4A7C15 ^ uint64(uint32(y))*0xC2B2AE3D27D4EB4F
	h = (h ^ h>>31) * 0xBF58476D1CE4E5B9
	h = (h ^ h>>29) * 0x94D049BB133111EB
	return uint32(h >> 32)
}

// A noise varies smoothly from 0 to 255 over 2^scale pixels. It caches the corners of the last
// square of the grid.
type noise struct {
	seed   uint64
	scale  int
	x, y   int // position of the cached square
	corner [4]int
	kept   bool
}

func (n *noise) valueAt(x, y int) int {
	one := 1 << n.scale
	gx, gy, fx, fy := x>>n.scale, y>>n.scale, x&(one-1), y&(one-1)
	if !n.kept || gx != n.x || gy != n.y {
		n.x, n.y, n.kept = gx, gy, true
		for i := range n.corner {
			n.corner[i] = int(hashPoint(n.seed+uint64(n.scale), gx+i&1, gy+i>>1) & 255)
		}
	}
	top := n.corner[0]*(one-fx) + n.corner[1]*fx
	bottom := n.corner[2]*(one-fx) + n.corner[3]*fx
	return (top*(one-fy) + bottom*fy) >> (2 * n.scale)
}

// A tissue is the area that is not bare glass.
type tissue struct {
	coarse, fine noise
}

func (t *tissue) containsPoint(x, y int) bool {
	return 2*t.coarse.valueAt(x, y)+t.fine.valueAt(x, y) > 300
}

// paintLevel paints level 0.
func paintLevel(spec Spec) *raster {
	r := newRaster(spec.Width, spec.Height)
	where := tissue{noise{seed: spec.Seed, scale: 8}, noise{seed: spec.Seed, scale: 6}}
	fibres := noise{seed: spec.Seed + 1, scale: 4}
	for y := range r.height {
		row := r.pixelRow(y)
		for x := range r.width {
			p := row[3*x : 3*x+3]
			grain := int(hashPoint(spec.Seed, x, y) & 7)
			if !where.containsPoint(x, y) {
				p[0], p[1], p[2] = byte(236+grain), byte(234+grain), byte(238+grain)
				continue
			}
			fibre := fibres.valueAt(x+y/2, y-x/3) / 3 // 0 to 85
			p[0], p[1], p[2] = byte(228-fibre/3+grain), byte(190-fibre+grain), byte(212-fibre/2+grain)
		}
	}
	const cell = 22 // distance of nuclei in pixels
	for cy := range ceilDiv(r.height, cell) {
		for cx := range ceilDiv(r.width, cell) {
			h := hashPoint(spec.Seed+2, cx, cy)
			x, y, radius := cx*cell+int(h%cell), cy*cell+int(h>>8%cell), 3+int(h>>16%6)
			if h>>24 < 170 && where.containsPoint(x, y) {
				r.drawNucleus(x, y, radius, int(h>>28))
			}
		}
	}
	return r
}

// drawNucleus draws a dark disc with a darker rim.
func (r *raster) drawNucleus(x0, y0, radius, tint int) {
	for y := max(0, y0-radius); y <= min(r.height-1, y0+radius); y++ {
		row := r.pixelRow(y)
		for x := max(0, x0-radius); x <= min(r.width-1, x0+radius); x++ {
			d := (x-x0)*(x-x0) + (y-y0)*(y-y0)
			if d > radius*radius {
				continue
			}
			dark := 2*tint + 40*d/(radius*radius)
			p := row[3*x : 3*x+3]
			p[0], p[1], p[2] = byte(120-dark+int(p[0])&7), byte(90-dark+int(p[1])&7), byte(165-dark+int(p[2])&7)
		}
	}
}
