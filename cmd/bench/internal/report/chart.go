package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

// Size of one chart in points. The charts of an experiment are stacked; the height of a bar
// chart depends on its number of bars.
const (
	chartWidth  = 660
	lineHeight  = 300
	barHeight   = 22
	barMargin   = 64
	legendWidth = 170
	aloneWidth  = 420 // of a chart without a legend: its text is legible on a phone
)

var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PlusGlyph{},
}

// SVG draws the rows of a result in at least one chart for each pair of units. It returns a
// complete SVG document, or nil if there are no rows.
func SVG(res *bench.Result) ([]byte, error) { return drawPanels(panelsOfResult(res)) }

// drawAlone draws the chart without its legend, for a page that has it beside or below the chart.
func (p *panel) drawAlone() ([]byte, error) {
	return drawOn(aloneWidth, p.chartHeight(), func(all draw.Canvas) error {
		drawn, _, err := p.newPlot()
		if err == nil {
			drawn.Draw(draw.Crop(all, 6, -12, 6, -6))
		}
		return err
	})
}

// drawPanels draws the charts stacked. It returns nil if there are none.
func drawPanels(panels []*panel) ([]byte, error) {
	if len(panels) == 0 {
		return nil, nil
	}
	height := vg.Length(0)
	for _, p := range panels {
		height += p.chartHeight()
	}
	return drawOn(chartWidth, height, func(all draw.Canvas) error {
		top := vg.Length(0)
		for _, p := range panels {
			drawn, legend, err := p.newPlot()
			if err != nil {
				return err
			}
			area := draw.Crop(all, 0, 0, height-top-p.chartHeight(), -top)
			top += p.chartHeight()
			if p.isBars() {
				drawn.Draw(draw.Crop(area, 6, -12, 6, -6))
				continue
			}
			drawn.Draw(draw.Crop(area, 6, -legendWidth, 6, -6))
			legend.Draw(draw.Crop(area, chartWidth-legendWidth+10, 0, 40, -24))
		}
		return nil
	})
}

// drawOn returns an SVG document that drawAll has drawn.
func drawOn(width, height vg.Length, drawAll func(draw.Canvas) error) ([]byte, error) {
	c := vgsvg.New(width, height)
	if err := drawAll(draw.New(c)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	// The text was laid out with Liberation Sans. Add fallbacks for readers without the
	// font.
	return bytes.ReplaceAll(b.Bytes(),
		[]byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// chartHeight returns the height of the chart.
func (p *panel) chartHeight() vg.Length {
	if p.isBars() {
		return vg.Length(barMargin + barHeight*len(p.series))
	}
	return lineHeight
}

// newPlot returns the plot of the panel and its legend.
func (p *panel) newPlot() (*plot.Plot, *plot.Legend, error) {
	chart := plot.New()
	legend := plot.NewLegend()
	legend.Top, legend.Left, legend.Padding = true, true, 3
	for _, t := range []*font.Font{
		&chart.Title.TextStyle.Font, &chart.X.Label.TextStyle.Font, &chart.Y.Label.TextStyle.Font,
		&chart.X.Tick.Label.Font, &chart.Y.Tick.Label.Font, &legend.TextStyle.Font,
	} {
		t.Variant, t.Size = "Sans", 11
	}
	chart.Title.Text = p.yUnit
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	draw := p.drawLines
	if p.isBars() {
		draw = p.drawBars
		chart.Title.Text = p.chartTitle()
		grid.Horizontal.Width = 0
	} else {
		chart.X.Label.Text = p.xUnit
		grid.Vertical.Width = 0
	}
	chart.Add(grid)
	return chart, &legend, draw(chart, &legend)
}

// clampFactor limits how far a band or a whisker extends beyond the largest figure and below
// the smallest. Without a limit, one outlier would determine the scale of the chart.
const clampFactor = 1.3

// errorRange returns the smallest figure and the 99th percentile of a row, or the smallest and the
// largest of its rounds if it has no statistics, clamped to the range of the chart. It returns
// false if the row has no sample.
func (p *panel) errorRange(r bench.Row) (low, high float64, ok bool) {
	switch {
	case r.Stats != nil && r.N > 1:
		low, high = r.Min, r.P99
	case len(r.Rounds) > 1:
		low, high = slices.Min(r.Rounds), slices.Max(r.Rounds)
	default:
		return 0, 0, false
	}
	if low > r.Y || high < r.Y {
		return 0, 0, false
	}
	least, most := p.yRange()
	low, high = max(low, min(least, least/clampFactor)), min(high, max(most, most*clampFactor))
	return min(low, r.Y), max(high, r.Y), true
}

// drawBars draws a horizontal bar for each series, with whiskers from the smallest figure to
// the 99th percentile.
func (p *panel) drawBars(chart *plot.Plot, legend *plot.Legend) error {
	colors := p.seriesColors()
	n := len(p.series)
	names := make([]string, n)
	labels := plotter.XYLabels{}
	var whiskers struct {
		plotter.XYs
		plotter.XErrors
	}
	for i, s := range p.series {
		r, _ := p.findRow(s, p.xs[0])
		position := float64(n - 1 - i)
		names[n-1-i] = s
		bar, err := plotter.NewBarChart(plotter.Values{r.Y}, barHeight*0.7)
		if err != nil {
			return err
		}
		bar.Horizontal, bar.XMin = true, position
		bar.Color = colors[s]
		bar.LineStyle.Width = 0
		chart.Add(bar)
		end := max(r.Y, 0)
		if low, high, ok := p.errorRange(r); ok {
			whiskers.XYs = append(whiskers.XYs, plotter.XY{X: r.Y, Y: position})
			whiskers.XErrors = append(whiskers.XErrors, struct{ Low, High float64 }{r.Y - low, high - r.Y})
			end = high
		}
		labels.XYs = append(labels.XYs, plotter.XY{X: end, Y: position})
		text := formatNumber(r.Y)
		if r.Against != nil {
			text += "  " + formatRatio(r.Ratio)
		}
		labels.Labels = append(labels.Labels, text)
	}
	if len(whiskers.XYs) > 0 {
		errors, err := plotter.NewXErrorBars(whiskers)
		if err != nil {
			return err
		}
		errors.Color = color.Gray{60}
		chart.Add(errors)
	}
	figures, err := plotter.NewLabels(labels)
	if err != nil {
		return err
	}
	figures.Offset = vg.Point{X: 9, Y: -4}
	for i := range figures.TextStyle {
		figures.TextStyle[i].Font.Variant, figures.TextStyle[i].Font.Size = "Sans", 10
	}
	chart.Add(figures)
	err = p.drawPaper(chart, legend, func(point bench.PaperPoint) plotter.XY {
		return plotter.XY{X: point.Y, Y: float64(n - 1 - slices.Index(p.series, point.Series))}
	})
	if err != nil {
		return err
	}
	chart.NominalY(names...)
	chart.X.Tick.Marker = shortTicks{plot.DefaultTicks{}}
	chart.Y.Min, chart.Y.Max = -0.5, float64(n)-0.5
	chart.X.Min = min(chart.X.Min, 0)
	chart.X.Max += (chart.X.Max - chart.X.Min) * 0.2 // space for the labels behind the bars
	if chart.X.Max <= chart.X.Min {
		chart.X.Max = chart.X.Min + 1
	}
	return nil
}

// drawLines draws a line for each series, in a band from the smallest figure to the 99th
// percentile. Baselines are dashed. An axis is logarithmic if its figures span a large range.
func (p *panel) drawLines(chart *plot.Plot, legend *plot.Legend) error {
	colors := p.seriesColors()
	for i, s := range p.series {
		var xys, above, below plotter.XYs
		for _, x := range p.xs {
			r, ok := p.findRow(s, x)
			if !ok {
				continue
			}
			xys = append(xys, plotter.XY{X: x, Y: r.Y})
			if low, high, ok := p.errorRange(r); ok {
				above = append(above, plotter.XY{X: x, Y: high})
				below = append(below, plotter.XY{X: x, Y: low})
			}
		}
		if len(above) > 1 && !slices.Contains(p.baselines, s) {
			slices.Reverse(below)
			band, err := plotter.NewPolygon(append(above, below...))
			if err != nil {
				return err
			}
			c := colors[s]
			band.Color, band.LineStyle.Width = color.NRGBA{c.R, c.G, c.B, 30}, 0
			chart.Add(band)
		}
		line, points, err := plotter.NewLinePoints(xys)
		if err != nil {
			return err
		}
		line.Color = colors[s]
		line.Width = 1.5
		if slices.Contains(p.baselines, s) {
			line.Dashes = []vg.Length{5, 3}
		}
		points.Color = line.Color
		points.Shape = shapes[i%len(shapes)]
		points.Radius = 3
		chart.Add(line, points)
		legend.Add(s, line, points)
	}
	err := p.drawPaper(chart, legend, func(point bench.PaperPoint) plotter.XY { return plotter.XY{X: point.X, Y: point.Y} })
	if err != nil {
		return err
	}
	chart.X.Tick.Marker = shortTicks{plot.DefaultTicks{}}
	chart.Y.Tick.Marker = shortTicks{plot.DefaultTicks{}}
	if p.xs[0] > 0 && p.xs[len(p.xs)-1] >= 8*p.xs[0] {
		chart.X.Scale = plot.LogScale{}
		chart.X.Tick.Marker = p.sparseTicks()
	} else if len(p.xs) == 2 {
		chart.X.Tick.Marker = p.sparseTicks()
	}
	if low, high := p.yRange(); low > 0 && high > maxLinearRange*low {
		chart.Y.Scale = plot.LogScale{}
		chart.Y.Tick.Marker = logTicks{}
		chart.Y.Min = max(chart.Y.Min, math.SmallestNonzeroFloat64)
	} else {
		chart.Y.Min = min(chart.Y.Min, 0)
	}
	return nil
}

// maxLinearRange is the ratio of the largest figure to the smallest above which the axis is logarithmic: on a
// linear one the smallest would lie within the lowest fifth.
const maxLinearRange = 5

// A legendEntry is the name of a series and the look of its line.
type legendEntry struct {
	Name  string
	Class string // "", "baseline" or "paper"
	Color template.CSS
}

// legendEntries returns the legend of a chart of lines. Bars have their names on the axis.
func (p *panel) legendEntries() (entries []legendEntry) {
	css := func(c color.RGBA) template.CSS { return template.CSS(fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)) }
	if !p.isBars() {
		colors := p.seriesColors()
		for _, s := range p.series {
			e := legendEntry{Name: s, Color: css(colors[s])}
			if slices.Contains(p.baselines, s) {
				e.Class = "baseline"
			}
			entries = append(entries, e)
		}
	}
	if len(p.paper) > 0 {
		entries = append(entries, legendEntry{paperName, "paper", css(baselineColor)})
	}
	return entries
}

// palette has distinct colours, also for most colour-blind readers (Okabe and Ito's palette).
var palette = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255},
	{150, 130, 0, 255},
}

// baselineColor is the colour of baseline series.
var baselineColor = color.RGBA{110, 110, 110, 255}

// seriesColors returns the colour of each series of the panel: baselines are grey, and the others
// have different hues.
func (p *panel) seriesColors() map[string]color.RGBA {
	colors := map[string]color.RGBA{}
	targets := 0
	for _, s := range p.series {
		if k := slices.Index(p.baselines, s); k >= 0 {
			colors[s] = shadeColor(baselineColor, k, len(p.baselines))
			continue
		}
		colors[s] = palette[targets%len(palette)]
		targets++
	}
	return colors
}

// shadeColor returns the i-th of n shades of c, from dark to light, or c itself if n is 1.
func shadeColor(c color.RGBA, i, n int) color.RGBA {
	if n == 1 {
		return c
	}
	const darkest, lightest = -0.35, 0.55
	to := darkest + (lightest-darkest)*float64(i)/float64(n-1)
	mix := func(v uint8) uint8 {
		if to < 0 {
			return uint8(float64(v) * (1 + to))
		}
		return uint8(float64(v) + (255-float64(v))*to)
	}
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 255}
}
