package report

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/env"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// Text returns the tables of a result, the series that are missing, and the statements with their
// outcomes.
func Text(res *bench.Result) string {
	var b strings.Builder
	e := res.Experiment
	fmt.Fprintf(&b, "%s (%s)\n", e.Name, e.Source)
	for _, g := range groupRows(res.Rows) {
		fmt.Fprintf(&b, "\n%s\n", g.renderTable())
	}
	if notes := baselineNotes(res.Rows); notes != "" {
		fmt.Fprintf(&b, "\n%s\n", notes)
	}
	if absent := absenceLines(res.Rows); absent != "" {
		fmt.Fprintf(&b, "\n%s", absent)
	}
	fmt.Fprintf(&b, "\n%s\n", outcome(res))
	return b.String()
}

// outcome returns the outcome of each statement, or the error.
func outcome(res *bench.Result) string {
	switch {
	case errors.Is(res.Err, bench.ErrInterrupted):
		return res.Err.Error()
	case res.Err != nil:
		return "FAILED  " + res.Err.Error()
	}
	var lines []string
	for _, o := range res.Outcomes {
		place := o.Source
		if o.Paper != "" {
			place += ": " + o.Paper
		}
		lines = append(lines, Wrap(fmt.Sprintf("%s (%s)", o.Sentence, place), "claim   ", "        ", screenWidth, 8)...)
		lines = append(lines, Wrap(o.String(), "        -> ", "           ", screenWidth, 8)...)
	}
	return strings.Join(append(lines, "verdict "+bench.Count(res.Outcomes)), "\n")
}

// absenceLines returns a line for each series that could not be measured, with the reason.
func absenceLines(rows []bench.Row) string {
	var b strings.Builder
	for _, r := range rows {
		if r.Absent != "" {
			fmt.Fprintf(&b, "%s: %s\n", r.Series, r.Absent)
		}
	}
	return b.String()
}

// baselineNotes returns a note that names the baselines of the ratios in the tables.
func baselineNotes(rows []bench.Row) string {
	var names []string
	seen := map[string]bool{}
	for _, r := range rows {
		if r.Against != nil && !seen[r.Baseline] {
			seen[r.Baseline] = true
			names = append(names, r.Baseline)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "n×: over " + strings.Join(names, " or ") + " in the same unit, measured in the same run\n" + RatioNote
}

// RatioNote explains why a ratio may differ from the quotient of two printed figures.
const RatioNote = "a ratio is the median of the rounds' own ratios, which need not be the quotient of the median figures"

// newTable returns an empty table in the common style.
func newTable() table.Writer {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	return t
}

// rightAligned returns configurations that right-align all n columns but the first.
func rightAligned(n int) []table.ColumnConfig {
	c := make([]table.ColumnConfig, n)
	for i := range c {
		c[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	c[0].Align, c[0].AlignHeader = text.AlignLeft, text.AlignLeft
	return c
}

// renderTable renders the group as a grid. The longer of the two lists runs down.
func (g *group) renderTable() string {
	t := newTable()
	if len(g.series) > len(g.xs) {
		head := table.Row{g.yUnit}
		for _, x := range g.xs {
			head = append(head, measure.FormatAt(x, g.xUnit))
		}
		t.AppendHeader(head)
		for _, s := range g.series {
			line := table.Row{s}
			for _, x := range g.xs {
				line = append(line, g.formatCell(s, x))
			}
			t.AppendRow(line)
		}
		t.SetColumnConfigs(rightAligned(len(head)))
		return t.Render()
	}
	head := table.Row{g.yUnit}
	for _, s := range g.series {
		head = append(head, s)
	}
	t.AppendHeader(head)
	for _, x := range g.xs {
		line := table.Row{measure.FormatAt(x, g.xUnit)}
		for _, s := range g.series {
			line = append(line, g.formatCell(s, x))
		}
		t.AppendRow(line)
	}
	t.SetColumnConfigs(rightAligned(len(head)))
	return t.Render()
}

// formatCell returns the text of a cell: the figure and its ratio, if any.
func (g *group) formatCell(series string, x float64) string {
	r, ok := g.findRow(series, x)
	if !ok {
		return ""
	}
	s := formatNumber(r.Y)
	if r.Against != nil {
		s += fmt.Sprintf(" %6s", formatRatio(r.Ratio))
	}
	return s
}

// Details returns all figures of quick runs with the spread of their samples: a table for each
// experiment. Claims are not judged.
func Details(machine env.Fingerprint, results []*bench.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", machine)
	for _, res := range results {
		fmt.Fprintf(&b, "\n%s\n", detailTable(res))
		for _, failure := range Failures(res) {
			fmt.Fprintf(&b, "FAILED  %s\n", failure)
		}
		b.WriteString(absenceLines(res.Rows))
	}
	return b.String()
}

// detailTable returns a table with a line for each figure.
func detailTable(res *bench.Result) string {
	t := newTable()
	t.SetTitle("%s", res.Experiment.Name)
	t.AppendHeader(table.Row{"series", "at", "figure", "unit", "min", "p99", "max", "ratio"})
	ratios := false
	for _, r := range res.Rows {
		if r.Absent != "" {
			continue
		}
		line := table.Row{r.Series, measure.FormatAt(r.X, r.XUnit), formatNumber(r.Y), r.YUnit, "", "", "", ""}
		if r.Stats != nil {
			line[4], line[5], line[6] = formatNumber(r.Min), formatNumber(r.P99), formatNumber(r.Max)
		}
		if r.Against != nil {
			line[7] = formatRatio(r.Ratio) + " " + r.Baseline
			ratios = true
		}
		t.AppendRow(line)
	}
	if ratios {
		t.SetCaption(RatioNote)
	}
	return t.Render()
}

// formatNumber formats v with about three significant digits.
func formatNumber(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', 2, 64) + "M"
	case a >= 100 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

// formatRatio formats a ratio with two decimals, or with two significant digits below 0.1.
func formatRatio(r float64) string {
	if r < 0.1 {
		return strconv.FormatFloat(r, 'g', 2, 64) + "×"
	}
	return strconv.FormatFloat(r, 'f', 2, 64) + "×"
}
