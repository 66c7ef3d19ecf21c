package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// Points are the places on an axis at which a statement compares.
type Points struct {
	unit     string
	from, to float64
}

// At returns the single point x of the axis with the given unit.
func At(x float64, unit string) Points { return Points{unit, x, x} }

// Between returns the points from one to another. A statement needs at least one of them.
func Between(from, to float64, unit string) Points { return Points{unit, from, to} }

// From returns all points that are not below x.
func From(x float64, unit string) Points { return Points{unit, x, math.Inf(1)} }

// Everywhere returns all points of the axis.
func Everywhere(unit string) Points { return Points{unit, math.Inf(-1), math.Inf(1)} }

// String returns the points in words: "at 8 B".
func (p Points) String() string {
	switch {
	case p.from == p.to:
		return "at " + measure.FormatAt(p.from, p.unit)
	case math.IsInf(p.from, -1):
		return "at every point"
	case math.IsInf(p.to, 1):
		return "from " + measure.FormatAt(p.from, p.unit)
	}
	return fmt.Sprintf("from %s to %s", measure.FormatAt(p.from, p.unit), measure.FormatAt(p.to, p.unit))
}

func (p Points) containPoint(x float64, unit string) bool {
	return unit == p.unit && x >= p.from && x <= p.to
}

// figures are the rows of a run.
type figures []Row

// rowsAt returns the rows of a series at points, in increasing order of x.
func (f figures) rowsAt(series, unit string, points Points) (found []Row) {
	for _, r := range f {
		if r.Series == series && r.YUnit == unit && r.Absent == "" && points.containPoint(r.X, r.XUnit) {
			found = append(found, r)
		}
	}
	slices.SortStableFunc(found, func(a, b Row) int { return cmp.Compare(a.X, b.X) })
	return found
}

// absenceOf returns the reason for which a series could not be measured, or "".
func (f figures) absenceOf(series string) string {
	i := slices.IndexFunc(f, func(r Row) bool { return r.Series == series && r.Absent != "" })
	if i < 0 {
		return ""
	}
	return f[i].Absent
}

// Limits of the noise of a comparator.
const (
	maxSpread  = 1.5 // of its rounds
	maxOffBest = 2.0 // of its figure from its own best of the run
)

// noiseOf returns a reason if the figure of a comparator does not decide, or "". Its rounds must agree,
// and its figure must not be far from its own best: of the rounds, and of points that are no
// easier, because a message does not take longer than a longer one, and a stream of longer
// messages is not slower.
func (f figures) noiseOf(r Row) string {
	if noise := spreadNoise(r); noise != "" {
		return noise
	}
	points := Points{r.XUnit, r.X, math.Inf(1)}
	if !measure.IsTime(r.YUnit) {
		points = Points{r.XUnit, math.Inf(-1), r.X}
		if r.YUnit != measure.MegabytesPerSec || r.XUnit != measure.Bytes {
			points.from = r.X
		}
	}
	best, bestAt := r.Y, r.X
	for _, other := range f.rowsAt(r.Series, r.YUnit, points) {
		values := []float64{other.Y}
		if other.X == r.X {
			values = append(values, r.Rounds...)
		}
		for _, y := range values {
			if y < best == measure.IsTime(r.YUnit) {
				best, bestAt = y, other.X
			}
		}
	}
	if off := max(best/r.Y, r.Y/best); off > maxOffBest {
		return fmt.Sprintf("%s at %s is %.1f times off its own best of the run (at %s)", r.Series, measure.FormatAt(r.X, r.XUnit), off, measure.FormatAt(bestAt, r.XUnit))
	}
	return ""
}

// spreadNoise returns a reason if the rounds of a row do not agree, or "".
func spreadNoise(r Row) string {
	if spread := measure.Spread(r.Rounds); spread > maxSpread {
		return fmt.Sprintf("the rounds of %s at %s spread %s > %v", r.Series, measure.FormatAt(r.X, r.XUnit), AtMost(maxSpread).formatFigure(spread), maxSpread)
	}
	return ""
}

// straddleNoise returns a reason if the figure of a row decides nothing: its rounds do not agree, and
// the limit holds in some of them and not in others. figures are those that the limit is about, in
// each round.
func straddleNoise(r Row, figures []float64, l Limit) string {
	misses := func(f float64) bool { return !l.isWithin(f) }
	if slices.ContainsFunc(figures, l.isWithin) && slices.ContainsFunc(figures, misses) {
		return spreadNoise(r)
	}
	return ""
}

// roundRatios returns the ratios of two rows in each round.
func roundRatios(of, over Row) []float64 {
	return combineRounds(of, over, func(a, b float64) float64 { return a / b })
}

// roundDifferences returns the differences of two rows in each round.
func roundDifferences(of, minus Row) []float64 {
	return combineRounds(of, minus, func(a, b float64) float64 { return a - b })
}

func combineRounds(a, b Row, combine func(a, b float64) float64) []float64 {
	combined := make([]float64, min(len(a.Rounds), len(b.Rounds)))
	for i := range combined {
		combined[i] = combine(a.Rounds[i], b.Rounds[i])
	}
	return combined
}

// scaleRounds returns the figures of a row in each round, times a factor.
func scaleRounds(r Row, factor float64) []float64 {
	scaled := make([]float64, len(r.Rounds))
	for i, y := range r.Rounds {
		scaled[i] = y * factor
	}
	return scaled
}

// rowRatio returns the median ratio of two rows of the same rounds, or the ratio of their figures if
// there are no rounds. It returns false if there is none.
func rowRatio(of, over Row) (float64, bool) {
	r := of.Y / over.Y
	if len(of.Rounds) > 0 && len(over.Rounds) > 0 {
		r = measure.MedianRatio(of.Rounds, over.Rounds)
	}
	return r, !math.IsNaN(r) && !math.IsInf(r, 0)
}
