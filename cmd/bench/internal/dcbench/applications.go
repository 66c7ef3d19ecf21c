package dcbench

import (
	"fmt"
	"image"
	"io"

	"github.com/softrnic/softrnic/cmd/bench/internal/isosurface"
	"github.com/softrnic/softrnic/cmd/bench/internal/microscope"
	"github.com/softrnic/softrnic/datacutter"
)

var microscopeProgram = program{
	groups:  5,
	filters: []string{"read", "decompress", "clip", "zoom", "view"},
	generate: func(w io.Writer, n int64, unitSize int) error {
		return microscope.Generate(w, microscope.SpecFor(n, unitSize))
	},
	reference: func(file io.ReaderAt, size int64) (*image.NRGBA, error) {
		slide, err := microscope.Open(file, size)
		if err != nil {
			return nil, err
		}
		return microscope.Reference(slide, wholeSlide(slide))
	},
	prepare: func(file io.ReaderAt, size int64, unitSize int, l datacutter.Layout) (appInstance, error) {
		slide, err := microscope.Open(file, size)
		if err != nil {
			return nil, err
		}
		return microscope.New(microscope.Options{Slide: slide, Query: wholeSlide(slide), UnitSize: unitSize, Layout: l})
	},
}

// wholeSlide returns a query of the whole slide at the highest resolution, with nine slide
// pixels for one image pixel.
func wholeSlide(s *microscope.Slide) microscope.Query {
	return microscope.Query{Region: s.Bounds(), Zoom: 3}
}

var isosurfaceProgram = program{
	groups:  6,
	filters: []string{"read", "extract", "raster", "merge"},
	generate: func(w io.Writer, n int64, _ int) error {
		return isosurface.Generate(w, isosurface.SpecFor(n))
	},
	reference: func(file io.ReaderAt, size int64) (*image.NRGBA, error) {
		volume, err := isosurface.Open(file, size)
		if err != nil {
			return nil, err
		}
		return isosurface.Reference(volume, isosurface.Query{})
	},
	prepare: func(file io.ReaderAt, size int64, unitSize int, l datacutter.Layout) (appInstance, error) {
		volume, err := isosurface.Open(file, size)
		if err != nil {
			return nil, err
		}
		return isosurface.New(isosurface.Options{Volume: volume, UnitSize: unitSize, Layout: l})
	},
}

// hostName returns the name of a process.
func hostName(rank int) string { return fmt.Sprintf("process%02d", rank) }

// placeFilters places the filter groups of an application on processes. The last filters run on
// the first process. Going backwards, each other filter runs on the process with the fewest
// filters, except for that of its successor. With two processes, the filters of a group
// alternate.
func (p *program) placeFilters(processes int) (l datacutter.Layout) {
	last := len(p.filters) - 1
	load := make([]int, processes) // filters on each process
	load[0] = p.groups
	for group := range p.groups {
		at := 0
		for f := last; f >= 0; f-- {
			if f < last {
				at = leastLoaded(load, at)
				load[at]++
			}
			l = append(l, datacutter.Placement{Group: group, Filter: p.filters[f], Host: hostName(at)})
		}
	}
	return l
}

// leastLoaded returns the first process with the fewest filters, except for one process.
func leastLoaded(load []int, except int) int {
	best := -1
	for i, n := range load {
		if i != except && (best < 0 || n < load[best]) {
			best = i
		}
	}
	return best
}
