package isosurface

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/datacutter"
)

// Names of the streams.
const (
	blocks  = "blocks"    // read to extract: samples of a block of cells
	surface = "triangles" // extract to raster: the surface in a block
	pixels  = "pixels"    // raster to merge: runs of pixels with depths
)

// A slab is the query of a work: render the cells from z = from up to z = to.
type slab struct {
	Query
	from, to int
}

const slabLen = 8 * 4

func (s slab) appendTo(b []byte) []byte {
	for _, n := range []int{s.Iso, s.Rotation[0], s.Rotation[1], s.Rotation[2], s.Rotation[3], s.Size, s.from, s.to} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// parseSlab parses the encoding of appendTo. Both sides run the same job, so other content
// cannot occur.
func parseSlab(b []byte) (s slab, err error) {
	if len(b) != slabLen {
		return s, fmt.Errorf("%w: %d bytes", ErrQuery, len(b))
	}
	n := func(i int) int { return int(int32(binary.BigEndian.Uint32(b[4*i:]))) }
	return slab{Query{n(0), [4]int{n(1), n(2), n(3), n(4)}, n(5)}, n(6), n(7)}, nil
}

// eachUnit calls f for every unit of an input.
func eachUnit(w *datacutter.Work, in string, f func(unit []byte) error) error {
	for unit, err := range w.In(in).Units() {
		if err == nil {
			err = f(unit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A reader sends the samples of a slab block by block. Its copies share the blocks.
type reader struct {
	layer layer
	unit  []byte
}

func (r *reader) Process(_ context.Context, w *datacutter.Work) error {
	s, err := parseSlab(w.Query)
	if err != nil {
		return err
	}
	out := w.Out(blocks)
	edge, cells, n := blockFor(out.UnitSize()), r.layer.volume.cellCounts(), 0
	for z := s.from; z < s.to; z += edge {
		if err := r.layer.readPlanes(z, min(edge, s.to-z)); err != nil {
			return err
		}
		for y := 0; y < cells[1]; y += edge {
			for x := 0; x < cells[0]; x += edge {
				if n++; n%w.Copies != w.Copy {
					continue
				}
				r.unit = r.layer.appendBlock(r.unit[:0], x, y, min(edge, cells[0]-x), min(edge, cells[1]-y))
				if err := out.SendKey(uint64(n), r.unit); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// An extractor extracts the triangles of the surface in each block.
type extractor struct {
	volume *Volume
	part   samples
	pack   packer
}

func (e *extractor) Process(_ context.Context, w *datacutter.Work) error {
	s, err := parseSlab(w.Query)
	if err != nil {
		return err
	}
	e.pack.out, e.pack.head = w.Out(surface), originLen
	var failed error
	add := func(t *triangle) {
		if failed != nil {
			return
		}
		if failed = e.pack.ensureRoom(triangleLen); failed == nil {
			e.pack.unit = appendTriangle(e.pack.unit, t)
		}
	}
	return eachUnit(w, blocks, func(unit []byte) error {
		if _, e.part, err = parseBlock(unit, e.volume.dims); err != nil {
			return err
		}
		e.pack.unit = append(e.pack.unit[:0], unit[:originLen]...)
		if e.part.extractSurface(s.Iso, add); failed != nil {
			return failed
		}
		return e.pack.flushUnit()
	})
}

// A shader projects, shades and rasterizes triangles.
type shader struct {
	volume *Volume
	on     triangle
	raster rasterizer
	pack   packer
}

func (r *shader) Process(_ context.Context, w *datacutter.Work) error {
	s, err := parseSlab(w.Query)
	if err != nil {
		return err
	}
	r.pack.out, r.pack.unit = w.Out(pixels), r.pack.unit[:0]
	r.raster.size = int64(s.Size)
	p := s.newProjection(r.volume.dims)
	var points [3]point
	add := r.packRun
	draw := func() error {
		for i, v := range r.on {
			points[i] = p.projectVertex(v.at, v.normal)
		}
		return r.raster.drawTriangle(&points, add)
	}
	err = eachUnit(w, surface, func(unit []byte) error { return eachTriangle(unit, r.volume.dims, &r.on, draw) })
	if err != nil {
		return err
	}
	return r.pack.flushUnit()
}

// packRun packs a run of pixels, split over units if needed.
func (r *shader) packRun(x, y int, run []pixel) error {
	for len(run) > 0 {
		if err := r.pack.ensureRoom(runLen + pixelLen); err != nil {
			return err
		}
		n := min(len(run), (r.pack.out.UnitSize()-len(r.pack.unit)-runLen)/pixelLen)
		r.pack.unit = appendRun(r.pack.unit, x, y, run[:n])
		x, run = x+n, run[n:]
	}
	return nil
}

// A merger keeps the nearest pixels and passes the frame of a work to show.
type merger struct {
	show  func(*frame)
	frame *frame
}

func (m *merger) Process(_ context.Context, w *datacutter.Work) error {
	s, err := parseSlab(w.Query)
	if err != nil {
		return err
	}
	if m.frame == nil {
		m.frame = newFrame(s.Size)
	}
	m.frame.clearPixels()
	if err := eachUnit(w, pixels, m.frame.putRuns); err != nil {
		return err
	}
	m.show(m.frame)
	return nil
}
