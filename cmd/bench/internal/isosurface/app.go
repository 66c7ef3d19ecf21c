package isosurface

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"sync"

	"github.com/softrnic/softrnic/datacutter"
)

// Options describe the rendering and the distribution of the work. The zero value of all fields
// but Volume is the paper's configuration.
type Options struct {
	Volume *Volume
	Query  Query

	UnitSize int // unit size in bytes, at least 76; 0 means 1024

	Groups int // instances of the filter group, 0 means 6
	Works  int // slabs of the volume that the groups render; 0 means one for each group

	Hosts  []string          // hosts for datacutter.Gather; none means 12
	Layout datacutter.Layout // replaces Groups and Hosts

	Policy datacutter.Policy // of all streams
}

// An App is a prepared rendering, or one process's part of it.
type App struct {
	job   datacutter.Job
	frame *frame

	mu      sync.Mutex
	missing int // missing frames, one for each work and copy of merge
	wanted  int
}

// New prepares a run.
func New(o Options) (*App, error) {
	if err := o.Query.setDefaults(); err != nil {
		return nil, err
	}
	o.UnitSize = cmp.Or(o.UnitSize, 1024)
	o.Groups = cmp.Or(o.Groups, 6)
	if len(o.Hosts) == 0 {
		for i := range 12 {
			o.Hosts = append(o.Hosts, fmt.Sprintf("node%02d", i))
		}
	}
	if blockFor(o.UnitSize) == 0 {
		return nil, fmt.Errorf("isosurface: units of %d bytes: want at least 76, the size of one cell", o.UnitSize)
	}
	a := &App{frame: newFrame(o.Query.Size)}
	a.job.Group = a.filterGroup(o)
	if a.job.Layout = o.Layout; o.Layout == nil {
		a.job.Layout = datacutter.Gather(a.job.Group, o.Groups, o.Hosts...)
	}
	groups := 0
	merges := make(map[int]int) // number of copies, by group
	for _, p := range a.job.Layout {
		groups = max(groups, p.Group+1)
		if p.Filter == "merge" {
			merges[p.Group] += max(p.Copies, 1)
		}
	}
	o.Works = cmp.Or(o.Works, groups)
	cells := o.Volume.cellCounts()[2]
	n := min(o.Works, cells)
	for i := range n {
		s := slab{o.Query, i * cells / n, (i + 1) * cells / n}
		a.job.Works = append(a.job.Works, s.appendTo(nil))
		a.wanted += merges[i%max(groups, 1)]
	}
	a.missing = a.wanted
	return a, nil
}

func (a *App) filterGroup(o Options) datacutter.Group {
	stream := func(name, from, to string) datacutter.Stream {
		return datacutter.Stream{Name: name, From: from, To: to, UnitSize: o.UnitSize, Policy: o.Policy}
	}
	filter := func(name string, f func() datacutter.Filter) datacutter.FilterDef {
		return datacutter.FilterDef{Name: name, New: func(datacutter.Instance) (datacutter.Filter, error) { return f(), nil }}
	}
	return datacutter.Group{
		Filters: []datacutter.FilterDef{
			filter("read", func() datacutter.Filter { return &reader{layer: layer{volume: o.Volume}} }),
			filter("extract", func() datacutter.Filter { return &extractor{volume: o.Volume} }),
			filter("raster", func() datacutter.Filter { return &shader{volume: o.Volume} }),
			filter("merge", func() datacutter.Filter { return &merger{show: a.addFrame} }),
		},
		Streams: []datacutter.Stream{stream(blocks, "read", "extract"), stream(surface, "extract", "raster"), stream(pixels, "raster", "merge")},
	}
}

// Job returns the job to run, by datacutter.Run or on each host by a Node.
func (a *App) Job() datacutter.Job { return a.job }

// addFrame merges the frame of a slab into the image.
func (a *App) addFrame(f *frame) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.frame.mergeFrame(f)
	a.missing--
}

// Picture returns the image of a run. Among several processes only the one that ran all merge
// filters has it, by default that of the first host.
func (a *App) Picture() (*image.NRGBA, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.missing > 0 {
		return nil, fmt.Errorf("isosurface: %d of %d frames missing in this process", a.missing, a.wanted)
	}
	return a.frame.toImage(), nil
}

// Run renders with all hosts in this process. The report has the elapsed time.
func Run(ctx context.Context, network datacutter.Network, o Options) (*image.NRGBA, datacutter.Report, error) {
	a, err := New(o)
	if err != nil {
		return nil, datacutter.Report{}, err
	}
	report, err := datacutter.Run(ctx, network, a.Job())
	if err != nil {
		return nil, report, err
	}
	picture, err := a.Picture()
	return picture, report, err
}

// Reference renders a volume for comparison: at once, without filters, streams and blocks.
func Reference(v *Volume, q Query) (*image.NRGBA, error) {
	if err := q.setDefaults(); err != nil {
		return nil, err
	}
	all := samples{cells: v.cellCounts()}
	plane := make([]byte, v.dims[0]*v.dims[1])
	for z := -1; z <= v.dims[2]; z++ {
		if err := v.readPlane(plane, z); err != nil {
			return nil, err
		}
		for y := -1; y <= v.dims[1]; y++ {
			for x := -1; x <= v.dims[0]; x++ {
				all.data = append(all.data, plane[min(max(y, 0), v.dims[1]-1)*v.dims[0]+min(max(x, 0), v.dims[0]-1)])
			}
		}
	}
	p := q.newProjection(v.dims)
	f := newFrame(q.Size)
	r := rasterizer{size: int64(q.Size)}
	var failed error
	all.extractSurface(q.Iso, func(t *triangle) {
		var points [3]point
		for i := range t {
			points[i] = p.projectVertex(t[i].at, t[i].normal)
		}
		failed = r.drawTriangle(&points, func(x, y int, run []pixel) error {
			f.mergeRun(x, y, run)
			return nil
		})
	})
	return f.toImage(), failed
}
