package bench

import (
	"fmt"
	"math"
	"strconv"
)

// A Limit bounds a figure.
type Limit struct{ low, high float64 }

// AtMost returns the limit of a figure that is not above v.
func AtMost(v float64) Limit { return Limit{math.Inf(-1), v} }

// AtLeast returns the limit of a figure that is not below v.
func AtLeast(v float64) Limit { return Limit{v, math.Inf(1)} }

// Within returns the limit of a figure from low to high.
func Within(low, high float64) Limit { return Limit{low, high} }

func (l Limit) isWithin(figure float64) bool { return figure >= l.low && figure <= l.high }

// String returns the limit in words, with its bounds rounded: "at most 0.25".
func (l Limit) String() string { return l.roundBounds().allDigits() }

// describeFigure returns a figure and the limit in words: "0.12 (at most 0.25)". The bounds are rounded
// unless that changes on which side of them the figure is.
func (l Limit) describeFigure(figure float64) string {
	shown := l.roundBounds()
	if shown.isWithin(figure) != l.isWithin(figure) {
		shown = l
	}
	return fmt.Sprintf("%s (%s)", shown.formatFigure(figure), shown.allDigits())
}

func (l Limit) roundBounds() Limit { return Limit{roundBound(l.low), roundBound(l.high)} }

// roundBound rounds a bound that is a quotient, such as 1/0.96, to three digits. One with at most
// three decimals remains as it is.
func roundBound(v float64) float64 {
	switch {
	case v == math.Round(v*1000)/1000:
		return v
	case math.Abs(v) >= 100:
		return math.Round(v)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // its own output
	return rounded
}

// allDigits returns the limit in words, with all digits of its bounds.
func (l Limit) allDigits() string {
	switch {
	case math.IsInf(l.low, -1):
		return "at most " + formatPlain(l.high)
	case math.IsInf(l.high, 1):
		return "at least " + formatPlain(l.low)
	}
	return fmt.Sprintf("%s to %s", formatPlain(l.low), formatPlain(l.high))
}

// isNear reports whether figure is within the fraction band of one of the bounds. A bound of 0
// has no near figures.
func (l Limit) isNear(figure, band float64) bool {
	for _, bound := range []float64{l.low, l.high} {
		if bound != 0 && !math.IsInf(bound, 0) && math.Abs(figure/bound-1) <= band {
			return true
		}
	}
	return false
}

// isBeyond reports whether figure passes number by half or more in the direction of the limit.
func (l Limit) isBeyond(figure, number float64) bool {
	switch {
	case math.IsInf(l.low, -1):
		return figure <= number/beyondBy
	case math.IsInf(l.high, 1):
		return figure >= number*beyondBy
	}
	return false
}

// missBy returns by how much figure misses the nearer bound: above 0 if it misses, and less the
// farther it is inside.
func (l Limit) missBy(figure float64) float64 {
	return max(logDistance(figure, l.high), logDistance(l.low, figure))
}

// logDistance returns by how much larger a is than b: the logarithm of their ratio, or, where there
// is none, their difference.
func logDistance(a, b float64) float64 {
	if a > 0 && b > 0 {
		return math.Log(a / b)
	}
	return a - b
}

// formatFigure formats a figure with about three digits, and with as many as are needed to differ
// from a bound that it misses, so that no text says that 1.05 exceeds 1.05.
func (l Limit) formatFigure(figure float64) string {
	decimals := 2
	switch {
	case math.Abs(figure) >= 100:
		decimals = 0
	case math.Abs(figure) >= 10:
		decimals = 1
	}
	text := func(f float64) string { return strconv.FormatFloat(f, 'f', decimals, 64) }
	for !l.isWithin(figure) && decimals < 12 && (text(figure) == text(l.low) || text(figure) == text(l.high)) {
		decimals++
	}
	return text(figure)
}

func formatPlain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
