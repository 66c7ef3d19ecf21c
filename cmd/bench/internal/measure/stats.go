package measure

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Stats are statistics of a sample, in the unit of the figure.
type Stats struct {
	N   int64   `json:"n"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// Summarize returns the statistics of values, or the zero Stats if values is empty.
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

// Median returns the median of values: the middle one, or the mean of the two in the middle. It
// returns NaN if values is empty.
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

// MedianRatio returns the median of target[i]/baseline[i]. Both series come from alternating
// rounds: a disturbance that lasts longer than one round affects both figures of a pair and
// cancels out. Surplus figures of the longer slice are ignored. MedianRatio returns NaN if a
// slice is empty.
func MedianRatio(target, baseline []float64) float64 {
	n := min(len(target), len(baseline))
	ratios := make([]float64, n)
	for i := range ratios {
		ratios[i] = target[i] / baseline[i]
	}
	return Median(ratios)
}

// Spread returns the largest of the figures of alternating rounds over the smallest. Of five
// rounds or more, it leaves out one at each end. It returns 1 for fewer than two rounds, and
// infinity if the smallest is 0.
func Spread(rounds []float64) float64 {
	s := slices.Sorted(slices.Values(rounds))
	if len(s) >= 5 {
		s = s[1 : len(s)-1]
	}
	if len(s) < 2 {
		return 1
	}
	return s[len(s)-1] / s[0]
}

// Units of the figures that bench prints.
const (
	Bytes             = "B"          // payload of one message or packet
	Microseconds      = "us"         // half a round trip, unless a row says otherwise
	Milliseconds      = "ms"         // of an application's run
	MegabytesPerSec   = "MB/s"       // payload only, 1 MB = 1e6 bytes
	MessagesPerSecond = "messages/s" // completed messages
)

// IsTime reports whether unit is one of time, of which less is better: "us", "us on 8 ranks".
func IsTime(unit string) bool {
	first, _, _ := strings.Cut(unit, " ")
	return first == Microseconds || first == Milliseconds
}

// FormatAt formats a value of an axis with its unit. Sizes have binary prefixes, and the unit
// of a single item is singular.
func FormatAt(x float64, unit string) string {
	if unit == Bytes && x == math.Trunc(x) {
		for _, p := range []struct {
			name string
			size float64
		}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
			if x >= p.size && math.Mod(x, p.size) == 0 {
				return strconv.FormatFloat(x/p.size, 'f', -1, 64) + " " + p.name
			}
		}
	}
	if x == 1 && len(unit) > len("us") { // not a unit of time
		unit = strings.TrimSuffix(unit, "s")
	}
	return strconv.FormatFloat(x, 'f', -1, 64) + " " + unit
}

// MBps returns the payload rate of n bytes in d, in MB/s, or 0 if d is not positive.
func MBps(n int64, d time.Duration) float64 { return PerSecond(n, d) / 1e6 }

// PerSecond returns the rate of n events in d per second, or 0 if d is not positive.
func PerSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// Micros returns d in microseconds, including the fraction.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
