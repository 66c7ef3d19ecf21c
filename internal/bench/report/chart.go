package report

import (
	"bytes"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/softrnic/softrnic/internal/bench"
)

// The size of one chart; an experiment's charts stand under one another.
const (
	chartWidth  = 660
	chartHeight = 300
	legendWidth = 170
)

// A chart of fewer places than this shows bars, for lines would suggest more.
const fewPlaces = 3

// colors tell series apart, also for most who see colours differently (Okabe
// and Ito's palette).
var colors = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
	{230, 159, 0, 255}, {86, 180, 233, 255}, {90, 90, 90, 255}, {150, 130, 0, 255},
}

var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}, draw.PlusGlyph{},
}

// SVG draws the rows, a chart for each pair of units. It is a whole SVG
// document, and nil if there is nothing to draw.
func SVG(rows []bench.Row) ([]byte, error) {
	gs := groups(rows)
	if len(gs) == 0 {
		return nil, nil
	}
	height := vg.Length(chartHeight * len(gs))
	c := vgsvg.New(chartWidth, height)
	all := draw.New(c)
	for i, g := range gs {
		p, legend, err := g.chart()
		if err != nil {
			return nil, err
		}
		top := vg.Length(chartHeight * i)
		panel := draw.Crop(all, 0, 0, height-top-chartHeight, -top)
		p.Draw(draw.Crop(panel, 6, -legendWidth, 6, -6))
		legend.Draw(draw.Crop(panel, chartWidth-legendWidth+10, 0, 40, -24))
	}
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	// The font is the one that the text was laid out with; few have it.
	return bytes.ReplaceAll(b.Bytes(),
		[]byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

func (g *group) chart() (*plot.Plot, *plot.Legend, error) {
	p := plot.New()
	legend := plot.NewLegend()
	legend.Top, legend.Left, legend.Padding = true, true, 3
	for _, t := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &legend.TextStyle.Font,
	} {
		t.Variant, t.Size = "Sans", 11
	}
	p.Title.Text = g.yUnit
	p.X.Label.Text = g.xUnit
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = color.Gray{225}
	p.Add(grid)

	draw := g.lines
	if len(g.xs) < fewPlaces {
		draw = g.bars
	}
	if err := draw(p, &legend); err != nil {
		return nil, nil, err
	}
	return p, &legend, nil
}

// bars draws the series side by side at each place.
func (g *group) bars(p *plot.Plot, legend *plot.Legend) error {
	const room = (chartWidth - legendWidth - 60) * 0.8
	width := vg.Length(room / float64(len(g.xs)*len(g.series)))
	for i, s := range g.series {
		ys := make(plotter.Values, len(g.xs))
		for k, x := range g.xs {
			r, _ := g.at(s, x) // no row, no bar
			ys[k] = r.Y
		}
		bar, err := plotter.NewBarChart(ys, width)
		if err != nil {
			return err
		}
		bar.Color = colors[i%len(colors)]
		bar.LineStyle.Width = 0
		bar.Offset = width * vg.Length(float64(i)-float64(len(g.series)-1)/2)
		p.Add(bar)
		legend.Add(s, bar)
	}
	names := make([]string, len(g.xs))
	for k, x := range g.xs {
		names[k] = place(x, g.xUnit)
	}
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.5, float64(len(g.xs))-0.5
	p.X.Label.Text = ""
	p.Y.Min = min(p.Y.Min, 0)
	return nil
}

// lines draws a line for each series, with logarithmic axes where the figures
// spread too far for linear ones.
func (g *group) lines(p *plot.Plot, legend *plot.Legend) error {
	low, high := math.Inf(1), math.Inf(-1)
	for i, s := range g.series {
		var xys plotter.XYs
		for _, x := range g.xs {
			if r, ok := g.at(s, x); ok {
				xys = append(xys, plotter.XY{X: x, Y: r.Y})
				low, high = min(low, r.Y), max(high, r.Y)
			}
		}
		line, points, err := plotter.NewLinePoints(xys)
		if err != nil {
			return err
		}
		line.Color = colors[i%len(colors)]
		line.Width = 1.5
		points.Color = line.Color
		points.Shape = shapes[i%len(shapes)]
		points.Radius = 3
		p.Add(line, points)
		legend.Add(s, line, points)
	}
	if g.xs[0] > 0 && g.xs[len(g.xs)-1] >= 8*g.xs[0] {
		p.X.Scale = plot.LogScale{}
		p.X.Tick.Marker = g.sparseTicks()
	}
	if low > 0 && high > 50*low {
		p.Y.Scale = plot.LogScale{}
		p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	} else {
		p.Y.Min = min(p.Y.Min, 0)
	}
	return nil
}

// sparseTicks marks every place and names as many as there is room for.
func (g *group) sparseTicks() plot.ConstantTicks {
	const room = 9
	every := (len(g.xs) + room - 1) / room
	ticks := make(plot.ConstantTicks, len(g.xs))
	for i, x := range g.xs {
		ticks[i].Value = x
		if i%every == 0 {
			ticks[i].Label = strings.ReplaceAll(place(x, g.xUnit), " "+g.xUnit, "")
		}
	}
	return ticks
}
