package perftest

import (
	"math"
	"slices"
)

// A LatencyRow is a row of a latency test's report, in microseconds (or cycles).
type LatencyRow struct {
	Size    int64
	Iters   int64
	Min     float64
	Max     float64
	Typical float64 // median
	Average float64
	Stdev   float64
	P99     float64
	P999    float64
	TPS     float64 // round trips a second; of a test of a given duration
	CPU     *float64

	sorted  []float64 // all of them
	samples []float64 // as they came
}

// outliers is the number of longest rounds that do not count, as in perftest.
const outliers = 2

// latencyRow returns the row of a run.
func (r *latencyRun) latencyRow(perUnit float64) LatencyRow {
	row := LatencyRow{Size: int64(r.size)}
	ways := r.Test.roundTrips()
	if r.timed {
		from, to, early := r.measuredSpan(r.now())
		row.Iters = r.countedRounds
		if early {
			row.Iters = r.completed
		}
		if seconds := float64(to-from) / 1e9; row.Iters > 0 {
			row.Average = seconds * 1e9 / perUnit / ways / float64(row.Iters)
			row.TPS = float64(row.Iters) / seconds
		}
		return row
	}
	row.Iters = int64(len(r.times)) // all, unless the test was ended
	for i := 1; i < len(r.times); i++ {
		row.samples = append(row.samples, float64(r.times[i]-r.times[i-1])/perUnit/ways)
	}
	row.summarize()
	return row
}

// summarize computes the figures from samples. The median, the average and the deviation exclude
// the outliers; Max is the first outlier, and the percentiles include it.
func (row *LatencyRow) summarize() {
	row.sorted = slices.Sorted(slices.Values(row.samples))
	n := len(row.sorted) - outliers
	if n < 1 {
		return
	}
	body := row.sorted[:n]
	row.Min, row.Max = body[0], row.sorted[n]
	row.Typical = body[n/2]
	if n%2 == 0 {
		row.Typical = (body[n/2] + body[n/2-1]) / 2
	}
	sum := 0.0
	for _, x := range body {
		sum += x
	}
	row.Average = sum / float64(n)
	squares := 0.0
	for _, x := range body {
		squares += (x - row.Average) * (x - row.Average)
	}
	row.Stdev = math.Sqrt(squares / float64(n))
	row.P99 = row.sorted[int(math.Ceil(float64(n)*0.99))]
	row.P999 = row.sorted[int(math.Ceil(float64(n)*0.999))]
}
