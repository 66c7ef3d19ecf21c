package measure

import (
	"math"
	"slices"
	"time"
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

// The units of every figure that bench prints.
const (
	Bytes             = "B"          // of one message or packet's payload
	Microseconds      = "us"         // half a round trip, unless a row says otherwise
	MegabytesPerSec   = "MB/s"       // payload only, 1 MB = 1e6 bytes
	MessagesPerSecond = "messages/s" // completed messages
)

// MBps is the payload rate of n bytes in d, in MB/s; 0 if d is not positive.
func MBps(n int64, d time.Duration) float64 { return PerSecond(n, d) / 1e6 }

// PerSecond is how many of n fall into one second of d; 0 if d is not positive.
func PerSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// Micros is d in microseconds, fractions kept.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
