package microscope

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"sync"

	"github.com/softrnic/softrnic/datacutter"
)

// Options describe the view and the distribution of the work. The zero value of all fields but
// Slide is the paper's configuration, for the whole slide.
type Options struct {
	Slide *Slide
	Query Query // zero means the whole slide with zoom 3, which reads all of level 0

	// UnitSize is the unit size in bytes; 0 means 1024. See TileFor for the tiles that fit.
	UnitSize int

	Groups int // instances of the filter group; 0 means 5
	Works  int // bands of the image that the groups compute; 0 means one for each group

	Hosts  []string          // hosts for datacutter.Gather; none means 13
	Layout datacutter.Layout // replaces Groups and Hosts; view must not have copies

	Policy datacutter.Policy // of all streams
}

// An App is a prepared run of the microscope, or one process's part of it.
type App struct {
	job     datacutter.Job
	picture *image.NRGBA

	mu      sync.Mutex
	missing int // number of missing bands
}

// New prepares a run.
func New(o Options) (*App, error) {
	if o.Query == (Query{}) {
		o.Query = Query{Region: o.Slide.Bounds(), Zoom: 3}
	}
	o.UnitSize = cmp.Or(o.UnitSize, 1024)
	o.Groups = cmp.Or(o.Groups, 5)
	if len(o.Hosts) == 0 {
		for i := range 13 {
			o.Hosts = append(o.Hosts, fmt.Sprintf("node%02d", i))
		}
	}
	if need := max(tileUnit(o.Slide.edge), unitHeaderLen+o.Slide.longest); need > o.UnitSize {
		return nil, fmt.Errorf("microscope: units of %d bytes: too small for tiles of %d by %d pixels; use units of %d bytes, or a slide with tiles of %d",
			o.UnitSize, o.Slide.edge, o.Slide.edge, need, TileFor(o.UnitSize))
	}
	v, err := o.Slide.selectView(o.Query)
	if err != nil {
		return nil, err
	}
	a := &App{picture: image.NewNRGBA(image.Rectangle{Max: v.imageSize()})}
	a.job.Group = a.filterGroup(o)
	if a.job.Layout = o.Layout; o.Layout == nil {
		a.job.Layout = datacutter.Gather(a.job.Group, o.Groups, o.Hosts...)
	}
	groups := 0
	for _, p := range a.job.Layout {
		groups = max(groups, p.Group+1)
	}
	o.Works = cmp.Or(o.Works, groups)
	for _, band := range v.splitBands(o.Works) {
		a.job.Works = append(a.job.Works, band.appendTo(nil))
	}
	a.missing = len(a.job.Works)
	return a, nil
}

func (a *App) filterGroup(o Options) datacutter.Group {
	stream := func(name, from, to string) datacutter.Stream {
		return datacutter.Stream{Name: name, From: from, To: to, UnitSize: o.UnitSize, Policy: o.Policy}
	}
	filter := func(name string, f func() (datacutter.Filter, error)) datacutter.FilterDef {
		return datacutter.FilterDef{Name: name, New: func(i datacutter.Instance) (datacutter.Filter, error) {
			if name == "view" && i.Copies > 1 {
				return nil, errors.New("microscope: filter view with several copies in a group, want 1")
			}
			return f()
		}}
	}
	return datacutter.Group{
		Filters: []datacutter.FilterDef{
			filter("read", func() (datacutter.Filter, error) { return &reader{slide: o.Slide}, nil }),
			filter("decompress", func() (datacutter.Filter, error) { return newDecompressor(o.Slide) }),
			filter("clip", func() (datacutter.Filter, error) { return &clipper{slide: o.Slide}, nil }),
			filter("zoom", func() (datacutter.Filter, error) { return &zoomer{}, nil }),
			filter("view", func() (datacutter.Filter, error) { return &viewer{show: a.addBand}, nil }),
		},
		Streams: []datacutter.Stream{
			stream(tiles, "read", "decompress"), stream(pixels, "decompress", "clip"), stream(region, "clip", "zoom"), stream(grid, "zoom", "view"),
		},
	}
}

// Job returns the job to run, by datacutter.Run or on each host by a Node.
func (a *App) Job() datacutter.Job { return a.job }

// addBand draws a band into the image.
func (a *App) addBand(v view, band *image.NRGBA) {
	a.mu.Lock()
	defer a.mu.Unlock()
	draw.Draw(a.picture, band.Rect.Add(image.Pt(0, v.top)), band, image.Point{}, draw.Src)
	a.missing--
}

// Picture returns the image of a run. Among several processes only the one that ran all view
// filters has it, by default that of the first host.
func (a *App) Picture() (*image.NRGBA, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.missing > 0 {
		return nil, fmt.Errorf("microscope: %d of %d bands missing in this process", a.missing, len(a.job.Works))
	}
	return a.picture, nil
}

// Run runs the microscope with all hosts in this process. The report has the elapsed time.
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
