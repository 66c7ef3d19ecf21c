package experiments

import (
	"context"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/overlap"
)

// Units of a computation beside transfers.
const (
	processorsUnit   = "processors"
	stolenIdle       = "% stolen without traffic" // processor time of other threads than the computation's, and of caches that they change
	stolenLoaded     = "% stolen under load"
	overlapUnit      = "overlap" // 1: the computation hides the transfer entirely
	leftAfterCompute = "% of a transfer left"
	transferCost     = "processor time of a transfer in % of its length" // in the process that computes
)

// overlapParams returns the parameters of a computation beside transfers.
func overlapParams(size, transfer string) []bench.Param {
	return []bench.Param{
		{Name: "size", Kind: bench.Int, Default: size, Min: 64, Max: 4 << 20, OfClaim: true, Doc: "bytes of " + transfer},
		{Name: "processors", Kind: bench.Ints, Default: "1,2", Max: 2, Doc: "processors on which a process may run: 1, of its own, or 2, all of the machine, with the other process"},
		{Name: "rounds", Kind: bench.Int, Default: "9", Quick: "3", Doc: "alternating rounds at each point"},
		{Name: "iters", Kind: bench.Int, Default: "100", Quick: "30", Doc: "transfers in a round"},
		{Name: "time", Kind: bench.Duration, Default: "100ms", Quick: "50ms", Doc: "processor time of a computation without transfers of the process"},
	}
}

// An overlapTarget measures a computation beside transfers.
type overlapTarget struct {
	series  string
	measure func(ctx context.Context) (overlap.Result, error)
}

// overlapDetails are figures of the rounds of a target beside its overlap.
type overlapDetails struct{ left, cost []float64 }

// rounds returns rounds whose figure is the overlap, and which add their details to d.
func (d *overlapDetails) rounds(once func(ctx context.Context) (overlap.Result, error)) measure.Round {
	return func(ctx context.Context) (float64, error) {
		result, err := once(ctx)
		d.left, d.cost = append(d.left, result.LeftPercent()), append(d.cost, result.ProcessorPercent())
		return result.Overlap(), err
	}
}

// measureOverlap measures the targets in alternating rounds. Where a process has one processor, it also
// measures the processor time stolen without traffic.
func (r *run) measureOverlap(ctx context.Context, processors int, targets []overlapTarget, idle *seriesSet) error {
	var set seriesSet
	details := make([]overlapDetails, len(targets))
	for i, t := range targets {
		set.addSeries(t.series, details[i].rounds(t.measure))
	}
	samples, err := r.measurePoint(ctx, &set, onProcessors(processors, overlapUnit))
	if err != nil {
		return err
	}
	r.emitDetails(processors, samples, details)
	if processors == 1 {
		_, err = r.measurePoint(ctx, idle, onProcessors(processors, stolenIdle))
	}
	return err
}

// emitDetails emits the details of samples of overlap.
func (r *run) emitDetails(processors int, samples []bench.Sample, details []overlapDetails) {
	left, cost := make([]bench.Sample, len(samples)), make([]bench.Sample, len(samples))
	for i, s := range samples {
		left[i] = bench.Sample{Series: s.Series, Figures: details[i].left}
		cost[i] = bench.Sample{Series: s.Series, Figures: details[i].cost}
	}
	r.EmitAgainst(onProcessors(processors, leftAfterCompute), left[0], left[1:]...)
	r.EmitAgainst(onProcessors(processors, transferCost), cost[0], cost[1:]...)
}

// onProcessors returns the point of a number of processors.
func onProcessors(n int, unit string) bench.Point {
	return bench.Point{X: float64(n), XUnit: processorsUnit, YUnit: unit}
}

// stolenAt returns the comparison of stolen processor time where a process has one processor.
func stolenAt(series, unit string, limit bench.Limit) bench.Comparison {
	return bench.Value{Of: []string{series}, Unit: unit, At: bench.At(1, processorsUnit), Limit: limit}
}

// overlapAt returns the comparison of an overlap.
func overlapAt(series string, processors int, limit bench.Limit) bench.Comparison {
	return bench.Value{Of: []string{series}, Unit: overlapUnit, At: bench.At(float64(processors), processorsUnit), Limit: limit}
}

// leftAt returns the comparison of the share of a transfer that is left.
func leftAt(series string, processors int, limit bench.Limit) bench.Comparison {
	return bench.Value{Of: []string{series}, Unit: leftAfterCompute, At: bench.At(float64(processors), processorsUnit), Limit: limit}
}

// Causes of missing overlap, measured in transferCost.
const (
	ownProcessor  = "the adapter is software on the processor that computes, so that the processor time of the transfer is added to the computation"
	twoProcessors = "the adapter is software: beside the computation, the other processor has to do the work of both adapters, that of this process being the processor time of the transfer"
)
