package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/mpi"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "a2a-hybrid",
		Source: "RCUD fig. 7b",
		Layer:  bench.LayerMPI,
		Claim: "With more RC connections per rank, and UD for all other ranks, the hybrid alltoall takes less time and a rank takes more memory. " +
			"With UD alone, memory does not grow with the number of ranks.",
		Axes: []bench.Axis{{Name: "rc-limit", Unit: limitUnit}},
		Params: []bench.Param{
			{Name: "ranks", Kind: bench.Int, Default: "16", Quick: "8", Min: 2, Max: 64, Doc: "ranks, each a process"},
			{Name: "limits", Kind: bench.Ints, Default: "2,4,8,12,16", Quick: "2,6,8", Max: 64, Doc: "maximum RC connections of a rank; 0 is always included"},
			{Name: "size", Kind: bench.Int, Default: "16KiB", Min: 1, Max: 1 << 20, Doc: "bytes that a rank sends to each other rank"},
			{Name: "memory", Kind: bench.Ints, Default: "8,32,61", Quick: "4,16", Min: 2, Max: 64, Doc: "numbers of ranks for the memory measurement, with all RC connections and with UD alone"},
			{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "20", Quick: "10", Doc: "calls in a round"},
		},
		Run: a2aHybrid,
	})
}

const (
	limitUnit    = "RC connections" // unit of rc-limit
	hybridSeries = "hybrid"
	heapSeries   = "memory-per-rank"
	flatHeap     = 1.1 // maximum ratio of UD memory between numbers of ranks
)

func a2aHybrid(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
	limits := slices.Sorted(slices.Values(append([]int{0}, r.Ints("limits")...)))
	r.Plan(1 + len(r.Ints("memory")))
	var j evaluation
	if err := hybridTimes(ctx, r, limits, &j); err != nil {
		return bench.Verdict{}, err
	}
	if err := ranksMemory(ctx, r, &j); err != nil {
		return bench.Verdict{}, err
	}
	return j.makeVerdict(), nil
}

// hybridTimes measures time and memory with each limit.
func hybridTimes(ctx context.Context, r *bench.Run, limits []int, j *evaluation) error {
	ranks := r.Int("ranks")
	r.Step("%d ranks", ranks)
	var variants []a2aVariant
	for _, limit := range limits {
		variants = append(variants, a2aVariant{hybridSeries, mpibench.Alltoall{Algorithm: "hybrid", Net: mpi.Hybrid, RCLimit: limit}})
	}
	all, err := openA2A(ctx, ranks, variants)
	defer all.close()
	if err != nil {
		return err
	}
	var set seriesSet
	all.addTo(&set, r.Int("size"), r.Int("iters"))
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return err
	}
	var mixed []float64 // memory of limits with both RC and UD in use
	for i, limit := range limits {
		memory, err := all[i].job.Memory(ctx)
		if err != nil {
			return err
		}
		if limit > 0 && limit < ranks {
			mixed = append(mixed, memory.Heap)
		}
		stats := measure.Summarize(samples[i].Figures)
		r.Emit(bench.Row{Series: hybridSeries, X: float64(limit), XUnit: limitUnit, Y: measure.Median(samples[i].Figures), YUnit: measure.Microseconds, Stats: &stats})
		r.Emit(bench.Row{Series: heapSeries, X: float64(limit), XUnit: limitUnit, Y: memory.Heap, YUnit: measure.Bytes})
	}
	if last := len(limits) - 1; last > 0 {
		desc := fmt.Sprintf("time on %d ranks, rc-limit %d over %d", ranks, limits[last], limits[0])
		j.atMost(desc, measure.MedianRatio(samples[last].Figures, samples[0].Figures), 1)
	}
	if last := len(mixed) - 1; last > 0 {
		grown := mixed[last] - mixed[0]
		j.addNote(grown > 0, "memory grows by %.0f KiB from the lowest to the highest limit with both RC and UD in use", grown/1024)
	}
	return nil
}

// ranksMemory measures the memory of a rank in jobs of increasing size in which all ranks have
// communicated, by connections and by UD.
func ranksMemory(ctx context.Context, r *bench.Run, j *evaluation) error {
	variants := []a2aVariant{
		{heapSeries + "-ud", mpibench.Alltoall{Algorithm: "ud", Net: mpi.UD}},
		{heapSeries + "-rc", mpibench.Alltoall{Algorithm: "direct"}},
	}
	counts := slices.Sorted(slices.Values(r.Ints("memory")))
	heaps := make([][2]float64, len(counts))
	for i, ranks := range counts {
		r.Step("memory of %d ranks", ranks)
		for k, s := range variants {
			all, err := openA2A(ctx, ranks, []a2aVariant{s})
			var memory mpibench.Memory
			if err == nil {
				memory, err = all[0].job.Memory(ctx)
			}
			all.close()
			if err != nil {
				return err
			}
			heaps[i][k] = memory.Heap
			r.Emit(bench.Row{Series: s.series, X: float64(ranks), XUnit: ranksUnit, Y: memory.Heap, YUnit: measure.Bytes})
		}
	}
	first, last := heaps[0], heaps[len(heaps)-1]
	if len(counts) > 1 {
		j.atMost(fmt.Sprintf("memory of a rank with UD, %d over %d ranks", counts[len(counts)-1], counts[0]), last[0]/first[0], flatHeap)
		j.addNote(true, "with all RC connections the same ratio is %.2f, and memory on %d ranks is %.1f times that of UD", last[1]/first[1], counts[len(counts)-1], last[1]/last[0])
	}
	return nil
}
