package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// panelSeries is the maximum number of series of a chart, including the baselines. More series
// would not be distinguishable.
const panelSeries = 7

// A panel is a part of a group that has its own chart.
type panel struct {
	*group
	series    []string // including the baselines
	baselines []string // series that others are compared with
	xs        []float64
	paper     []bench.PaperPoint
}

// panelsOfResult returns the charts of a result, with the points of the paper.
func panelsOfResult(res *bench.Result) (all []*panel) {
	var points []bench.PaperPoint
	if res.Experiment != nil {
		points = res.Experiment.PaperPoints(res.Rows)
	}
	for _, g := range groupRows(res.Rows) {
		for _, p := range g.panels() {
			for _, point := range points {
				if point.XUnit == p.xUnit && point.YUnit == p.yUnit && slices.Contains(p.series, point.Series) && slices.Contains(p.xs, point.X) {
					p.paper = append(p.paper, point)
				}
			}
			all = append(all, p)
		}
	}
	return all
}

// panels splits the group into charts. Series with the same baseline share a chart. Charts of
// similar magnitude are merged if their series fit into one.
func (g *group) panels() []*panel {
	byBaseline := map[string]*panel{}
	var all []*panel
	at := func(baseline string) *panel {
		p := byBaseline[baseline]
		if p == nil {
			p = &panel{group: g}
			byBaseline[baseline], all = p, append(all, p)
			if baseline != "" {
				p.series, p.baselines = []string{baseline}, []string{baseline}
			}
		}
		return p
	}
	isBaseline := g.baselineSeries()
	for _, s := range g.series {
		switch b := g.baselineOf(s); {
		case b != "":
			p := at(b)
			p.series = append(p.series, s)
		case isBaseline[s]:
			at(s)
		default:
			p := at("")
			p.series = append(p.series, s)
		}
	}
	var parted []*panel
	for _, p := range all {
		parted = append(parted, p.splitSeries()...)
	}
	return mergePanels(parted)
}

// baselineOf returns the baseline of s, or "" if the group does not have it.
func (g *group) baselineOf(s string) string {
	for _, x := range g.xs {
		if r, ok := g.findRow(s, x); ok && r.Against != nil && slices.Contains(g.series, r.Baseline) {
			return r.Baseline
		}
	}
	return ""
}

// baselineSeries returns the set of series that others are compared with.
func (g *group) baselineSeries() map[string]bool {
	set := map[string]bool{}
	for _, s := range g.series {
		set[g.baselineOf(s)] = true
	}
	return set
}

// splitSeries splits a panel with too many series. Each part has the baselines.
func (p *panel) splitSeries() []*panel {
	rest := p.series[len(p.baselines):]
	if len(rest) == 0 {
		return []*panel{p}
	}
	room := panelSeries - len(p.baselines)
	var parts []*panel
	n := (len(rest) + room - 1) / room
	for part := range slices.Chunk(rest, (len(rest)+n-1)/n) {
		parts = append(parts, &panel{group: p.group, series: slices.Concat(p.baselines, part), baselines: p.baselines})
	}
	return parts
}

// maxRangeRatio is the maximum ratio between the largest and the smallest figure of panels that
// share a chart.
const maxRangeRatio = 8

// mergePanels merges neighbouring panels that fit into one chart, and sets the x values of
// each.
func mergePanels(all []*panel) (merged []*panel) {
	for _, p := range all {
		if n := len(merged); n > 0 && len(merged[n-1].series)+len(p.series) <= panelSeries {
			last := merged[n-1]
			low, high := last.yRange()
			low2, high2 := p.yRange()
			if max(high, high2) <= maxRangeRatio*min(low, low2) || last.baselines == nil && p.baselines == nil {
				last.series = append(last.series, p.series...)
				last.baselines = append(last.baselines, p.baselines...)
				continue
			}
		}
		merged = append(merged, &panel{group: p.group, series: slices.Clone(p.series), baselines: slices.Clone(p.baselines)})
	}
	for _, p := range merged {
		for _, x := range p.group.xs {
			if slices.ContainsFunc(p.series, func(s string) bool { _, ok := p.findRow(s, x); return ok }) {
				p.xs = append(p.xs, x)
			}
		}
	}
	return merged
}

// yRange returns the smallest and the largest figure.
func (p *panel) yRange() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range p.series {
		for _, x := range p.group.xs {
			if r, ok := p.findRow(s, x); ok {
				low, high = min(low, r.Y), max(high, r.Y)
			}
		}
	}
	return low, high
}

// isBars reports whether the panel has a single x value, for which bars are drawn instead of
// lines.
func (p *panel) isBars() bool { return len(p.xs) == 1 }

// chartTitle returns the title of the chart.
func (p *panel) chartTitle() string {
	title := p.yUnit
	if p.isBars() {
		title += " at " + measure.FormatAt(p.xs[0], p.xUnit)
	} else {
		title += " over " + p.xUnit
	}
	return title
}

// chartCaption returns a sentence about the chart, and one about the paper's number that is the
// farthest from ours. The first is the statement that the figures of the chart decide, if there is one.
func (p *panel) chartCaption(outcomes []bench.Outcome) string {
	return strings.TrimSpace(cmp.Or(p.describeOutcome(outcomes), p.describeFigures()) + " " + p.describePaper())
}

// describeOutcome returns a statement that rests on figures of the chart, with its outcome, or "" if none does:
// one that is refuted before one that holds, and before one that was not judged.
func (p *panel) describeOutcome(outcomes []bench.Outcome) (text string) {
	best := 0
	for _, o := range outcomes {
		rests := slices.ContainsFunc(o.Checks, func(c bench.Check) bool { return slices.ContainsFunc(c.Rows, p.hasRow) })
		rank, words := 1, "Not judged: "
		switch {
		case o.Word == bench.Refuted:
			rank, words = 3, "Refuted here: "
		case o.Word == bench.Holds:
			rank, words = 2, ""
		case o.IsPass():
			rank, words = 2, "As in the paper: "
		}
		if rests && rank > best {
			best, text = rank, words+o.Sentence
		}
	}
	return text
}

// hasRow reports whether the chart shows the figure of a row.
func (p *panel) hasRow(r bench.Row) bool {
	return r.XUnit == p.xUnit && r.YUnit == p.yUnit && slices.Contains(p.series, r.Series) && slices.Contains(p.xs, r.X)
}

// describeFigures describes the extremes of bars, or the line that changes most.
func (p *panel) describeFigures() string {
	targets := slices.DeleteFunc(slices.Clone(p.series), func(s string) bool { return slices.Contains(p.baselines, s) })
	if len(targets) == 0 {
		targets = p.series
	}
	if !p.isBars() {
		if text := p.describeSteepest(targets); text != "" {
			return text
		}
		return p.describePoints()
	}
	x := p.xs[0]
	figure := func(s string) float64 { r, _ := p.findRow(s, x); return r.Y }
	byFigure := func(a, b string) int { return cmp.Compare(figure(a), figure(b)) }
	low, high := slices.MinFunc(targets, byFigure), slices.MaxFunc(targets, byFigure)
	text := fmt.Sprintf("%s: %s", low, formatQuantity(figure(low), p.yUnit))
	if low != high {
		text = fmt.Sprintf("Range: %s (%s) to %s (%s)", formatQuantity(figure(low), p.yUnit), low, formatQuantity(figure(high), p.yUnit), high)
	}
	if len(p.baselines) > 0 && !slices.Contains(targets, p.baselines[0]) {
		var figures []string
		for _, b := range p.baselines {
			figures = append(figures, fmt.Sprintf("%s (%s)", formatQuantity(figure(b), p.yUnit), b))
		}
		text += "; baseline " + strings.Join(figures, " and ")
	}
	return text + "."
}

// describePoints describes the extremes of series of one point each.
func (p *panel) describePoints() string {
	var rows []bench.Row
	for _, s := range p.series {
		for _, x := range p.xs {
			if r, ok := p.findRow(s, x); ok {
				rows = append(rows, r)
			}
		}
	}
	byFigure := func(a, b bench.Row) int { return cmp.Compare(a.Y, b.Y) }
	describe := func(r bench.Row) string {
		return fmt.Sprintf("%s (%s at %s)", formatQuantity(r.Y, p.yUnit), r.Series, measure.FormatAt(r.X, p.xUnit))
	}
	return fmt.Sprintf("Range: %s to %s.", describe(slices.MinFunc(rows, byFigure)), describe(slices.MaxFunc(rows, byFigure)))
}

// describeSteepest describes the series whose last figure differs most from its first.
func (p *panel) describeSteepest(series []string) string {
	text, most := "", 0.0
	for _, s := range series {
		var xs []float64
		for _, x := range p.xs {
			if _, ok := p.findRow(s, x); ok {
				xs = append(xs, x)
			}
		}
		if len(xs) < 2 {
			continue
		}
		first, _ := p.findRow(s, xs[0])
		last, _ := p.findRow(s, xs[len(xs)-1])
		change := math.Abs(last.Y - first.Y)
		if first.Y > 0 && last.Y > 0 {
			change = math.Abs(math.Log(last.Y / first.Y))
		}
		if text == "" || change > most {
			most = change
			text = fmt.Sprintf("%s changes most: %s at %s, %s at %s.", s, formatQuantity(first.Y, p.yUnit), measure.FormatAt(first.X, p.xUnit),
				formatQuantity(last.Y, p.yUnit), measure.FormatAt(last.X, p.xUnit))
		}
	}
	if text != "" && most == 0 {
		return "No series changes from its first point to its last."
	}
	return text
}

// A group is the rows of one experiment that have the same units, and therefore share a table
// and charts.
type group struct {
	xUnit, yUnit string
	xs           []float64 // in ascending order
	series       []string  // in the order of their first row
	rows         map[cell]bench.Row
}

type cell struct {
	series string
	x      float64
}

// groupRows groups rows by their units, in the order of the first row of each group.
func groupRows(rows []bench.Row) []*group {
	var all []*group
	for _, r := range rows {
		if r.Absent != "" {
			continue
		}
		i := slices.IndexFunc(all, func(g *group) bool { return g.xUnit == r.XUnit && g.yUnit == r.YUnit })
		if i < 0 {
			i = len(all)
			all = append(all, &group{xUnit: r.XUnit, yUnit: r.YUnit, rows: map[cell]bench.Row{}})
		}
		g := all[i]
		if !slices.Contains(g.series, r.Series) {
			g.series = append(g.series, r.Series)
		}
		if at, found := slices.BinarySearch(g.xs, r.X); !found {
			g.xs = slices.Insert(g.xs, at, r.X)
		}
		g.rows[cell{r.Series, r.X}] = r
	}
	return all
}

// findRow returns the row of a series at x, or false if there is none.
func (g *group) findRow(series string, x float64) (bench.Row, bool) {
	r, ok := g.rows[cell{series, x}]
	return r, ok
}
