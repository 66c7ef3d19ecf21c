package experiments

import (
	"context"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// A run is a running experiment.
type run struct{ *bench.Run }

// runFunc returns the Run function of an experiment.
func runFunc(do func(context.Context, *run) error) func(context.Context, *bench.Run) error {
	return func(ctx context.Context, r *bench.Run) error { return do(ctx, &run{r}) }
}

// measurePoint runs the series alternately, for the number of rounds of the parameter "rounds",
// and emits their samples, of which the first is the baseline of the others.
func (r *run) measurePoint(ctx context.Context, set *seriesSet, at bench.Point) ([]bench.Sample, error) {
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return nil, err
	}
	r.emitSamples(set, at, samples)
	return samples, nil
}

// emitSamples emits the samples of a set, of which the first is the baseline of the others, and
// the errors of opponents that failed.
func (r *run) emitSamples(set *seriesSet, at bench.Point, samples []bench.Sample) {
	r.EmitAgainst(at, samples[0], samples[1:]...)
	for series, err := range set.failed {
		r.EmitAbsent(series, "fails at %s %v", measure.FormatAt(at.X, at.XUnit), err)
	}
}

// measureSizes calls latency with each size of the parameter "latency", and bandwidth with each
// of the parameter "bandwidth". It plans one step for each size.
func (r *run) measureSizes(ctx context.Context, latency, bandwidth func(ctx context.Context, size int) error) error {
	r.Plan(len(r.Ints("latency")) + len(r.Ints("bandwidth")))
	for _, size := range r.Ints("latency") {
		r.Step("latency of %d B", size)
		if err := latency(ctx, size); err != nil {
			return err
		}
	}
	for _, size := range r.Ints("bandwidth") {
		r.Step("bandwidth of %d B", size)
		if err := bandwidth(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// atSize returns the point of a number of bytes.
func atSize(size int, unit string) bench.Point {
	return bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: unit}
}

// formatBytes formats a size in words: "64 KiB".
func formatBytes(n int) string { return measure.FormatAt(float64(n), measure.Bytes) }
