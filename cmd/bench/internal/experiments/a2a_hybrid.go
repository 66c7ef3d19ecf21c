package experiments

import (
	"context"
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
		Claims: a2aHybridClaims(),
		Axes:   []bench.Axis{{Name: "rc-limit", Unit: limitUnit}},
		Params: []bench.Param{
			{Name: "ranks", Kind: bench.Int, Default: "16", Quick: "8", Min: 2, Max: 64, Doc: "ranks, each a process"},
			{Name: "limits", Kind: bench.Ints, Default: "2,4,8,12,16", Quick: "2,6,8", Max: 64, Doc: "maximum RC connections of a rank; 0 is always included"},
			{Name: "size", Kind: bench.Int, Default: "16KiB", Min: 1, Max: 1 << 20, OfClaim: true, Doc: "bytes that a rank sends to each other rank"},
			{Name: "memory", Kind: bench.Ints, Default: "8,32,61", Quick: "4,16", Min: 2, Max: 64, Doc: "numbers of ranks for the memory measurement, with all RC connections and with UD alone"},
			{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "3", Doc: "alternating rounds at each point"},
			{Name: "iters", Kind: bench.Int, Default: "20", Quick: "10", Doc: "calls in a round"},
		},
		Run: runFunc(a2aHybrid),
	})
}

const (
	limitUnit    = "RC connections" // unit of rc-limit
	hybridSeries = "hybrid"
	heapSeries   = "memory-per-rank"
)

func a2aHybridClaims() []bench.Statement {
	limits, counts := bench.Everywhere(limitUnit), bench.Everywhere(ranksUnit)
	return []bench.Statement{
		{
			Sentence: "The hybrid alltoall takes at most 0.95 times as long with RC to all ranks as with UD to all.",
			Paper:    "increasing rc-limit delivers better performance",
			Compare:  bench.Growth{Of: []string{hybridSeries}, Unit: measure.Microseconds, At: limits, Limit: bench.AtMost(0.95)},
		},
		{
			Sentence: "It takes no longer with more RC connections, at each step (within 5 %).",
			Paper:    "increasing rc-limit delivers better performance",
			Compare:  bench.Growth{Of: []string{hybridSeries}, Unit: measure.Microseconds, At: limits, Step: true, Limit: bench.AtMost(1.05)},
		},
		{
			Sentence: "A rank takes more memory with more RC connections, from UD to all ranks to RC to all.",
			Paper:    "increases resources",
			Compare:  bench.Growth{Of: []string{heapSeries}, Unit: measure.Bytes, At: limits, Limit: bench.AtLeast(1)},
			Because:  "the buffers of the UD queue pair are there from the start, and those of connections only as far as they are used",
		},
		{
			Source:   "RCUD sec. 3.2",
			Sentence: "A rank takes more memory with RC to all ranks than with UD, on every number of ranks.",
			Paper:    "the motive of UD",
			Compare:  bench.Ratio{Of: []string{heapSeries + "-rc"}, Over: []string{heapSeries + "-ud"}, Unit: measure.Bytes, At: counts, Limit: bench.AtLeast(1)},
			Because:  "the buffers of the UD queue pair are there from the start, and those of connections only as far as they are used",
		},
		{
			Source:   "RCUD sec. 3.2",
			Sentence: "With UD alone, memory does not grow with the number of ranks (within 10 %).",
			Paper:    "few queue pairs, typically one",
			Compare:  bench.Flat{Of: []string{heapSeries + "-ud"}, Unit: measure.Bytes, At: counts, Limit: bench.AtMost(1.1)},
		},
	}
}

func a2aHybrid(ctx context.Context, r *run) error {
	limits := slices.Sorted(slices.Values(append([]int{0}, r.Ints("limits")...)))
	r.Plan(1 + len(r.Ints("memory")))
	if err := hybridTimes(ctx, r, limits); err != nil {
		return err
	}
	return ranksMemory(ctx, r)
}

// hybridTimes measures time and memory with each limit.
func hybridTimes(ctx context.Context, r *run, limits []int) error {
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
	for i, limit := range limits {
		memory, err := all[i].job.Memory(ctx)
		if err != nil {
			return err
		}
		stats := measure.Summarize(samples[i].Figures)
		r.Emit(bench.Row{Series: hybridSeries, X: float64(limit), XUnit: limitUnit, Y: measure.Median(samples[i].Figures), YUnit: measure.Microseconds, Rounds: samples[i].Figures, Stats: &stats})
		r.Emit(bench.Row{Series: heapSeries, X: float64(limit), XUnit: limitUnit, Y: memory.Heap, YUnit: measure.Bytes})
	}
	return nil
}

// ranksMemory measures the memory of a rank in jobs of increasing size in which all ranks have
// communicated, by connections and by UD.
func ranksMemory(ctx context.Context, r *run) error {
	variants := []a2aVariant{
		{heapSeries + "-ud", mpibench.Alltoall{Algorithm: "ud", Net: mpi.UD}},
		{heapSeries + "-rc", mpibench.Alltoall{Algorithm: "direct"}},
	}
	counts := slices.Sorted(slices.Values(r.Ints("memory")))
	for _, ranks := range counts {
		r.Step("memory of %d ranks", ranks)
		for _, s := range variants {
			all, err := openA2A(ctx, ranks, []a2aVariant{s})
			var memory mpibench.Memory
			if err == nil {
				memory, err = all[0].job.Memory(ctx)
			}
			all.close()
			if err != nil {
				return err
			}
			r.Emit(bench.Row{Series: s.series, X: float64(ranks), XUnit: ranksUnit, Y: memory.Heap, YUnit: measure.Bytes})
		}
	}
	return nil
}
