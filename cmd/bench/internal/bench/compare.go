package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// A Comparison compares figures with a limit.
type Comparison interface {
	// String describes the figures and the limit in words.
	String() string
	// comparedPoints returns the points of the figures.
	comparedPoints() []Points
	// comparedLimits returns the limits of the figures.
	comparedLimits() []Limit
	// addChecks adds a check for each figure, and the reasons for those that are missing, to j.
	addChecks(j *judgement)
}

// A judgement collects the checks of one statement.
type judgement struct {
	figures
	checks  []Check
	absent  []string // reasons of series that could not be measured
	missing []string // figures that the run did not measure
}

// addCheck adds a check of a figure of rows.
func (j *judgement) addCheck(description string, figure float64, l Limit, noise string, rows ...Row) {
	j.checks = append(j.checks, Check{
		Description: description, Value: l.describeFigure(figure), Rows: rows,
		Figure: figure, Limit: l, Holds: l.isWithin(figure), Noise: noise,
	})
}

// addRatio adds a check of a ratio of figures of rows in unit.
func (j *judgement) addRatio(description, unit string, ratio float64, l Limit, noise string, rows ...Row) {
	j.addCheck(description, ratio, l, noise, rows...)
	if !measure.IsTime(unit) {
		j.checks[len(j.checks)-1].Unit = unit
	}
}

// findRows returns the rows of a series at points. It records the reason if there are none.
func (j *judgement) findRows(series, unit string, points Points) []Row {
	rows := j.rowsAt(series, unit, points)
	if len(rows) == 0 {
		text := fmt.Sprintf("%s in %s was not measured %s", series, unit, points)
		list := &j.missing
		if reason := j.absenceOf(series); reason != "" {
			text, list = series+": "+reason, &j.absent
		}
		if !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	return rows
}

func (j *judgement) findRow(series, unit string, r Row) (Row, bool) {
	rows := j.findRows(series, unit, At(r.X, r.XUnit))
	if len(rows) == 0 {
		return Row{}, false
	}
	return rows[0], true
}

// A Ratio compares each series of Of with each of Over, measured in the same rounds, at each
// point.
type Ratio struct {
	Of, Over []string
	Unit     string
	At       Points
	Peak     bool // compare the largest figures of all points instead
	Limit    Limit
}

// String implements Comparison.
func (c Ratio) String() string {
	what := ""
	if c.Peak {
		what = "peak of "
	}
	return fmt.Sprintf("%s%s over %s in %s %v: %v", what, joinNames(c.Of), joinNames(c.Over), c.Unit, c.At, c.Limit)
}

func (c Ratio) comparedPoints() []Points { return []Points{c.At} }
func (c Ratio) comparedLimits() []Limit  { return []Limit{c.Limit} }

func (c Ratio) addChecks(j *judgement) {
	for _, of := range c.Of {
		rows := j.findRows(of, c.Unit, c.At)
		for _, over := range c.Over {
			if c.Peak {
				c.comparePeaks(j, rows, j.findRows(over, c.Unit, c.At))
				continue
			}
			for _, r := range rows {
				base, ok := j.findRow(over, c.Unit, r)
				if figure, valid := rowRatio(r, base); ok && valid {
					noise := cmp.Or(j.noiseOf(base), straddleNoise(r, roundRatios(r, base), c.Limit))
					j.addRatio(fmt.Sprintf("%s over %s at %s", of, over, measure.FormatAt(r.X, r.XUnit)), c.Unit, figure, c.Limit, noise, r, base)
				}
			}
		}
	}
}

func (c Ratio) comparePeaks(j *judgement, of, over []Row) {
	if len(of) == 0 || len(over) == 0 {
		return
	}
	a, b := slices.MaxFunc(of, byFigure), slices.MaxFunc(over, byFigure)
	if figure := a.Y / b.Y; b.Y > 0 {
		noise := cmp.Or(j.noiseOf(b), straddleNoise(a, scaleRounds(a, 1/b.Y), c.Limit))
		j.addRatio(fmt.Sprintf("peak of %s (at %s) over that of %s (at %s)", a.Series, measure.FormatAt(a.X, a.XUnit), b.Series, measure.FormatAt(b.X, b.XUnit)),
			c.Unit, figure, c.Limit, noise, a, b)
	}
}

func byFigure(a, b Row) int { return cmp.Compare(a.Y, b.Y) }

// A Value compares the figures of each series of Of, or their differences to those of Minus, at
// each point.
type Value struct {
	Of    []string
	Minus string // "": the figures themselves
	Unit  string
	At    Points
	Limit Limit
}

// String implements Comparison.
func (c Value) String() string {
	what := joinNames(c.Of)
	if c.Minus != "" {
		what += " minus " + c.Minus
	}
	return fmt.Sprintf("%s in %s %v: %v", what, c.Unit, c.At, c.Limit)
}

func (c Value) comparedPoints() []Points { return []Points{c.At} }
func (c Value) comparedLimits() []Limit  { return []Limit{c.Limit} }

func (c Value) addChecks(j *judgement) {
	for _, of := range c.Of {
		for _, r := range j.findRows(of, c.Unit, c.At) {
			figure, rounds, noise, what := r.Y, r.Rounds, "", of
			if c.Minus != "" {
				base, ok := j.findRow(c.Minus, c.Unit, r)
				if !ok {
					continue
				}
				figure, rounds, noise, what = r.Y-base.Y, roundDifferences(r, base), j.noiseOf(base), of+" minus "+c.Minus
			}
			noise = cmp.Or(noise, straddleNoise(r, rounds, c.Limit))
			j.addCheck(fmt.Sprintf("%s at %s, in %s", what, measure.FormatAt(r.X, r.XUnit), c.Unit), figure, c.Limit, noise, r)
		}
	}
}

// Alike compares the larger of each two series with the smaller at each point.
type Alike struct {
	Series []string
	Unit   string
	At     Points
	Limit  Limit
}

// String implements Comparison.
func (c Alike) String() string {
	return fmt.Sprintf("larger over smaller of %s in %s %v: %v", joinNames(c.Series), c.Unit, c.At, c.Limit)
}

func (c Alike) comparedPoints() []Points { return []Points{c.At} }
func (c Alike) comparedLimits() []Limit  { return []Limit{c.Limit} }

func (c Alike) addChecks(j *judgement) {
	for i, first := range c.Series {
		for _, second := range c.Series[i+1:] {
			for _, a := range j.findRows(first, c.Unit, c.At) {
				b, ok := j.findRow(second, c.Unit, a)
				figure, valid := rowRatio(a, b)
				if !ok || !valid || figure == 0 {
					continue
				}
				noise := j.noiseOf(a)
				if noise == "" {
					noise = j.noiseOf(b)
				}
				j.addRatio(fmt.Sprintf("larger over smaller of %s and %s at %s", first, second, measure.FormatAt(a.X, a.XUnit)), c.Unit, max(figure, 1/figure), c.Limit, noise, a, b)
			}
		}
	}
}

// Growth compares the figure of each series at the last point with that at the first, or, with
// Step, at each point with that at the one before. With Over it compares the ratios to another
// series. With Ends the first and the last point must be those of At.
type Growth struct {
	Of    []string
	Over  string
	Unit  string
	At    Points
	Ends  bool
	Step  bool
	Limit Limit
}

// String implements Comparison.
func (c Growth) String() string {
	what, how := joinNames(c.Of), "from first to last"
	if c.Over != "" {
		what += " over " + c.Over
	}
	if c.Step {
		how = "from each to the next"
	}
	return fmt.Sprintf("growth of %s in %s %v, %s: %v", what, c.Unit, c.At, how, c.Limit)
}

func (c Growth) comparedPoints() []Points { return []Points{c.At} }
func (c Growth) comparedLimits() []Limit  { return []Limit{c.Limit} }

func (c Growth) addChecks(j *judgement) {
	for _, of := range c.Of {
		var rows []Row // with the ratio to Over, if there is one
		noise := ""
		for _, r := range j.findRows(of, c.Unit, c.At) {
			if c.Over != "" {
				base, ok := j.findRow(c.Over, c.Unit, r)
				figure, valid := rowRatio(r, base)
				if !ok || !valid {
					continue
				}
				if noise == "" {
					noise = j.noiseOf(base)
				}
				r.Y, r.Rounds = figure, roundRatios(r, base)
			} else if noise == "" {
				noise = spreadNoise(r)
			}
			rows = append(rows, r)
		}
		c.compareRows(j, of, rows, noise)
	}
}

func (c Growth) compareRows(j *judgement, of string, rows []Row, noise string) {
	if len(rows) == 1 {
		j.missing = append(j.missing, fmt.Sprintf("%s was measured at one point only", of))
	}
	if len(rows) < 2 || c.Ends && !c.hasEnds(j, of, rows) {
		return
	}
	if !c.Step {
		rows = []Row{rows[0], rows[len(rows)-1]}
	}
	if c.Over != "" {
		of += " over " + c.Over
	}
	for i, r := range rows[1:] {
		first := rows[i]
		if figure, valid := rowRatio(r, first); valid {
			ratios := roundRatios(r, first)
			noise := cmp.Or(noise, straddleNoise(r, ratios, c.Limit), straddleNoise(first, ratios, c.Limit))
			j.addRatio(fmt.Sprintf("%s at %s over that at %s", of, measure.FormatAt(r.X, r.XUnit), measure.FormatAt(first.X, first.XUnit)), c.Unit, figure, c.Limit, noise, r, first)
		}
	}
}

// hasEnds reports whether rows begin and end with the points of At. It adds those that are missing to j.
func (c Growth) hasEnds(j *judgement, of string, rows []Row) bool {
	ok := true
	for _, end := range []struct{ want, x float64 }{{c.At.from, rows[0].X}, {c.At.to, rows[len(rows)-1].X}} {
		if end.x != end.want {
			ok = false
			j.missing = append(j.missing, fmt.Sprintf("%s in %s was not measured %s", of, c.Unit, At(end.want, c.At.unit)))
		}
	}
	return ok
}

// Flat compares the largest figure of each series over all points with the smallest.
type Flat struct {
	Of    []string
	Unit  string
	At    Points
	Limit Limit
}

// String implements Comparison.
func (c Flat) String() string {
	return fmt.Sprintf("largest over smallest figure of %s in %s %v: %v", joinNames(c.Of), c.Unit, c.At, c.Limit)
}

func (c Flat) comparedPoints() []Points { return []Points{c.At} }
func (c Flat) comparedLimits() []Limit  { return []Limit{c.Limit} }

func (c Flat) addChecks(j *judgement) {
	for _, of := range c.Of {
		rows := j.findRows(of, c.Unit, c.At)
		if len(rows) == 1 {
			j.missing = append(j.missing, fmt.Sprintf("%s was measured at one point only", of))
		}
		if len(rows) < 2 {
			continue
		}
		noise := ""
		for _, r := range rows {
			if noise == "" {
				noise = spreadNoise(r)
			}
		}
		most, least := slices.MaxFunc(rows, byFigure), slices.MinFunc(rows, byFigure)
		if figure, valid := rowRatio(most, least); valid {
			j.addRatio(fmt.Sprintf("%s at %s over that at %s", of, measure.FormatAt(most.X, most.XUnit), measure.FormatAt(least.X, least.XUnit)), c.Unit, figure, c.Limit, noise, most, least)
		}
	}
}

// All joins comparisons of which each must hold.
type All []Comparison

// String implements Comparison.
func (c All) String() string {
	texts := make([]string, len(c))
	for i, one := range c {
		texts[i] = one.String()
	}
	return strings.Join(texts, "; ")
}

func (c All) comparedPoints() (list []Points) {
	for _, one := range c {
		list = append(list, one.comparedPoints()...)
	}
	return list
}

func (c All) comparedLimits() (list []Limit) {
	for _, one := range c {
		list = append(list, one.comparedLimits()...)
	}
	return list
}

func (c All) addChecks(j *judgement) {
	for _, one := range c {
		one.addChecks(j)
	}
}

// joinNames joins names in words: "a, b and c".
func joinNames(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
