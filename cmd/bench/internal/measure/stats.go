package measure

import (
	"math"
	"slices"
)

// Stats describes a sample in the unit of the figure it belongs to.
type Stats struct {
	N   int64   `json:"n"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// Summarize describes values; the zero Stats if there are none.
func Summarize(values []float64) Stats {
	if len(values) == 0 {
		return Stats{}
	}
	s := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(0.99 * float64(len(s))))
	return Stats{
		N:   int64(len(s)),
		P50: medianOfSorted(s),
		P99: s[rank-1],
		Min: s[0],
		Max: s[len(s)-1],
	}
}

// Median is the middle of values, or the mean of the two in the middle; NaN if
// there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return medianOfSorted(slices.Sorted(slices.Values(values)))
}

func medianOfSorted(s []float64) float64 {
	h := len(s) / 2
	if len(s)%2 == 1 {
		return s[h]
	}
	return (s[h-1] + s[h]) / 2
}

// MedianRatio is the median of subject[i]/baseline[i], the two measured in
// alternating rounds: a disturbance that lasts longer than a round falls on
// both of a pair and cancels. NaN if a slice is empty; the longer one is cut.
func MedianRatio(subject, baseline []float64) float64 {
	n := min(len(subject), len(baseline))
	ratios := make([]float64, n)
	for i := range ratios {
		ratios[i] = subject[i] / baseline[i]
	}
	return Median(ratios)
}
