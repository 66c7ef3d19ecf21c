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

// An a2aVariant is an implementation of alltoall and its series.
type a2aVariant struct {
	series string
	how    mpibench.Alltoall
}

// a2aParams returns the parameters of a2aSizes.
func a2aParams(ranks, sizes bench.Param) []bench.Param {
	ranks.Name, ranks.Min, ranks.Max, ranks.Doc = "ranks", 2, 64, "ranks, each a process"
	sizes.Name, sizes.Kind, sizes.Min, sizes.Max, sizes.Doc = "sizes", bench.Ints, 1, 1<<20, "bytes that a rank sends to each other rank"
	return []bench.Param{
		ranks, sizes,
		besideOpenMPI(),
		{Name: "rounds", Kind: bench.Int, Default: "5", Quick: "3", Doc: "alternating rounds at each point"},
		{Name: "iters", Kind: bench.Int, Default: "40", Quick: "20", Doc: "calls in a round"},
	}
}

// a2aJobs are jobs that differ in the implementation of alltoall.
type a2aJobs []struct {
	a2aVariant
	job *mpibench.Job
}

// openA2A opens a job for each variant. The caller must close them, also after an error.
func openA2A(ctx context.Context, ranks int, variants []a2aVariant) (all a2aJobs, err error) {
	for _, s := range variants {
		job, err := mpibench.Open(ctx, mpibench.Config{Transport: mpibench.RDMA, Ranks: ranks, Alltoall: &s.how})
		if err != nil {
			return all, fmt.Errorf("%d ranks, %s: %w", ranks, s.series, err)
		}
		all = append(all, struct {
			a2aVariant
			job *mpibench.Job
		}{s, job})
	}
	return all, nil
}

func (all a2aJobs) close() {
	for _, s := range all {
		s.job.Close()
	}
}

// addTo adds all jobs to l.
func (all a2aJobs) addTo(l *seriesSet, size, iters int) {
	for _, s := range all {
		l.addSeries(s.series, s.job.Collective("Alltoall", size, iters))
	}
}

// a2aSizes measures variants on the given number of ranks, of which the first is the baseline,
// and calls evaluate with the samples of each size.
func a2aSizes(ctx context.Context, r *run, ranks int, variants []a2aVariant, evaluate func(size int, samples []bench.Sample)) error {
	r.Step("%d ranks", ranks)
	other, err := openOpenMPI(ctx, r)
	if err != nil {
		return err
	}
	defer other.close()
	all, err := openA2A(ctx, ranks, variants)
	defer all.close()
	if err != nil {
		return err
	}
	for _, size := range r.Ints("sizes") {
		r.Step("%d B on %d ranks", size, ranks)
		var set seriesSet
		all.addTo(&set, size, r.Int("iters"))
		other.addTo(&set, ranks, "alltoall", size, r.Int("iters"))
		samples, _, err := r.measurePoint(ctx, &set, atSize(size, fmt.Sprintf("%s on %d ranks", measure.Microseconds, ranks)))
		if err != nil {
			return err
		}
		evaluate(size, samples)
	}
	return nil
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "a2a-rdma",
		Source: "RCUD fig. 7a",
		Layer:  bench.LayerMPI,
		Claim: "An alltoall on 32 ranks with RDMA writes into the receive buffers takes 0.62 times as long as one " +
			"that copies from a shared receive queue. Zero-copy by sends with RTS and RTR takes longer than copying.",
		Axes: []bench.Axis{{Name: "block size", Unit: measure.Bytes}},
		Params: a2aParams(bench.Param{Kind: bench.Int, Default: "32", Quick: "8"},
			bench.Param{Default: "64,256,1KiB,4KiB,16KiB,64KiB", Quick: "1KiB,16KiB"}),
		Run: evaluated(a2aRDMA),
	})
}

// Series of alltoalls over RC connections.
const (
	a2aDirect  = "direct-srq"
	a2aWrites  = "rdma"
	a2aSends   = "rtsrtr"
	writesOver = 0.62 // over direct, in the paper
)

func a2aRDMA(ctx context.Context, r *run) error {
	ranks := r.Int("ranks")
	r.Plan(1 + len(r.Ints("sizes")))
	variants := []a2aVariant{
		{a2aDirect, mpibench.Alltoall{Algorithm: "direct"}},
		{a2aWrites, mpibench.Alltoall{Algorithm: "rdma"}},
		{a2aSends, mpibench.Alltoall{Algorithm: "rtsrtr"}},
	}
	var best, worst, sends extreme
	err := a2aSizes(ctx, r, ranks, variants, func(size int, samples []bench.Sample) {
		where := fmt.Sprintf("with %d B", size)
		if ratio, ok := medianRatioOf(samples, a2aWrites, a2aDirect); ok {
			best.keepMin(ratio, "%s", where)
			worst.keepMax(ratio, "%s", where)
		}
		if ratio, ok := medianRatioOf(samples, a2aSends, a2aDirect); ok {
			sends.keepMin(ratio, "%s", where)
		}
	})
	if err != nil {
		return err
	}
	holds := best.value <= writesOver
	r.addCheck(best.value, writesOver, holds, "on %d ranks %s takes %s times as long as %s %s (at most %.2f), and at worst %.2f %s",
		ranks, a2aWrites, formatFigure(best.value, writesOver, 2, holds), a2aDirect, best.where, writesOver, worst.value, worst.where)
	holds = sends.value >= 1
	r.addCheck(sends.value, 1, holds, "%s takes at least %s times as long %s (at least 1)", a2aSends, formatFigure(sends.value, 1, 2, holds), sends.where)
	return nil
}

func init() {
	bench.Register(&bench.Experiment{
		Name:   "a2a-ud",
		Source: "RCUD fig. 9",
		Layer:  bench.LayerMPI,
		Claim: "An alltoall of short blocks by the direct algorithm over UD takes at most 0.64 times as long as by Bruck's algorithm, and no longer than direct over RC. " +
			"With 64 B on 16 ranks, the algorithm of the table and shared memory each take at most 0.5 times as long as Open MPI over TCP.",
		Axes: []bench.Axis{{Name: "block size", Unit: measure.Bytes}},
		Params: a2aParams(bench.Param{Kind: bench.Ints, Default: "16,32,61", Quick: "8"},
			bench.Param{Default: "8,64,256,1KiB,4KiB,16KiB", Quick: "64,4KiB"}),
		Run: evaluated(a2aUD),
	})
}

// Series of alltoalls, over RC connections unless the name says otherwise.
const (
	a2aDatagrams = "direct-ud"
	a2aBruck     = "bruck"
	a2aTable     = "table"  // algorithm selected by the table
	a2aShared    = "shared" // in shared memory, for messages that fit
)

// Limits of the claim.
const (
	udOverBruck    = 0.64 // in the paper, for blocks up to shortPiece
	udOverRC       = 1.0  // for blocks up to shortPiece
	shortPiece     = 256  // bytes
	tableOverOther = 0.5  // over Open MPI, for otherPiece on otherRanks
	otherPiece     = 64
	otherRanks     = 16
)

func a2aUD(ctx context.Context, r *run) error {
	variants := []a2aVariant{
		{a2aDirect, mpibench.Alltoall{Algorithm: "direct"}},
		{a2aDatagrams, mpibench.Alltoall{Algorithm: "ud", Net: mpi.UD}},
		{a2aBruck, mpibench.Alltoall{Algorithm: "bruck"}},
		{a2aTable, mpibench.Alltoall{}},
		{a2aShared, mpibench.Alltoall{Shared: true}},
	}
	r.Plan(len(r.Ints("ranks")) * (1 + len(r.Ints("sizes"))))
	for _, ranks := range r.Ints("ranks") {
		var overBruck, overRC extreme // largest ratios
		err := a2aSizes(ctx, r, ranks, variants, func(size int, samples []bench.Sample) {
			if size <= shortPiece {
				over := func(e *extreme, baseline string) {
					if ratio, ok := medianRatioOf(samples, a2aDatagrams, baseline); ok {
						e.keepMax(ratio, "with %d B", size)
					}
				}
				over(&overBruck, a2aBruck)
				over(&overRC, a2aDirect)
			}
			for _, ours := range []string{a2aTable, a2aShared} {
				if ratio, ok := medianRatioOf(samples, ours, overOpenMPI); ok && size == otherPiece && ranks == otherRanks {
					r.atMost(fmt.Sprintf("%d B on %d ranks, %s over Open MPI", size, ranks, ours), ratio, tableOverOther)
				}
			}
		})
		if err != nil {
			return err
		}
		if overBruck.seen {
			holds := overBruck.value <= udOverBruck
			r.addCheck(overBruck.value, udOverBruck, holds, "on %d ranks %s over %s %s %s (at most %.2f)", ranks, a2aDatagrams, a2aBruck, formatFigure(overBruck.value, udOverBruck, 2, holds), overBruck.where, udOverBruck)
			holds = overRC.value <= udOverRC
			r.addCheck(overRC.value, udOverRC, holds, "over %s %s %s (at most %.2f)", a2aDirect, formatFigure(overRC.value, udOverRC, 2, holds), overRC.where, udOverRC)
		}
	}
	if !r.makeVerdict().Holds {
		r.addRemark("%s", "in the paper UD gains because the adapter caches few connection contexts and each rank has a processor; "+
			"here there is no context cache (ib-qp-latency), ranks share processors, and the ranks execute the reliability protocol over UD")
	}
	return nil
}

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
		Run: evaluated(a2aHybrid),
	})
}

const (
	limitUnit    = "RC connections" // unit of rc-limit
	hybridSeries = "hybrid"
	heapSeries   = "memory-per-rank"
	flatHeap     = 1.1 // maximum ratio of UD memory between numbers of ranks
)

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
		r.atMost(desc, measure.MedianRatio(samples[last].Figures, samples[0].Figures), 1)
	}
	if last := len(mixed) - 1; last > 0 {
		grown := mixed[last] - mixed[0]
		r.addNote(grown > 0, "memory grows by %.0f KiB from the lowest to the highest limit with both RC and UD in use", grown/1024)
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
		r.atMost(fmt.Sprintf("memory of a rank with UD, %d over %d ranks", counts[len(counts)-1], counts[0]), last[0]/first[0], flatHeap)
		r.addNote(true, "with all RC connections the same ratio is %.2f, and memory on %d ranks is %.1f times that of UD", last[1]/first[1], counts[len(counts)-1], last[1]/last[0])
	}
	return nil
}
