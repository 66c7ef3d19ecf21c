package report

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// describePaper describes the point of the paper that differs most from ours.
func (p *panel) describePaper() string {
	text, most := "", -1.0
	for _, point := range p.paper {
		off := 0.0
		if point.Ours > 0 {
			off = math.Abs(math.Log(point.Ours / point.Paper))
		}
		if off <= most {
			continue
		}
		most = off
		ours, paper := formatNumber(point.Ours)+" times "+point.Over, formatNumber(point.Paper)
		if point.Over == "" {
			ours, paper = formatQuantity(point.Ours, point.YUnit), formatQuantity(point.Paper, point.YUnit)
		}
		text = fmt.Sprintf("At %s %s is %s, in the paper %s.", measure.FormatAt(point.X, point.XUnit), point.Series, ours, paper)
	}
	return text
}

// paperName is the legend of the paper's points.
const paperName = "paper's ratio"

// drawPaper draws the points of the paper as diamonds in the colours of their series. at returns
// the position of a point.
func (p *panel) drawPaper(chart *plot.Plot, legend *plot.Legend, at func(bench.PaperPoint) plotter.XY) error {
	colors := p.seriesColors()
	for _, point := range p.paper {
		diamond, err := plotter.NewScatter(plotter.XYs{at(point)})
		if err != nil {
			return err
		}
		diamond.GlyphStyle = draw.GlyphStyle{Color: colors[point.Series], Radius: 6, Shape: paperGlyph{}}
		chart.Add(diamond)
	}
	if len(p.paper) > 0 {
		legend.Add(paperName, &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: baselineColor, Radius: 6, Shape: paperGlyph{}}})
	}
	return nil
}

// A paperGlyph is a diamond.
type paperGlyph struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (paperGlyph) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	c.SetLineStyle(draw.LineStyle{Color: style.Color, Width: 1.5})
	var path vg.Path
	path.Move(vg.Point{X: at.X, Y: at.Y + style.Radius})
	path.Line(vg.Point{X: at.X + style.Radius, Y: at.Y})
	path.Line(vg.Point{X: at.X, Y: at.Y - style.Radius})
	path.Line(vg.Point{X: at.X - style.Radius, Y: at.Y})
	path.Close()
	c.Stroke(path)
}
