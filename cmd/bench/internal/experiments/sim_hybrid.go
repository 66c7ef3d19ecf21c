package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	simulated "github.com/softrnic/softrnic/internal/cluster"
	"github.com/softrnic/softrnic/mpi"
)

func init() {
	bench.Register(&bench.Experiment{
		Name:   "sim-hybrid",
		Source: "RCUD fig. 7b",
		Layer:  bench.LayerMPI,
		Claims: simHybridClaims(),
		Axes:   []bench.Axis{{Name: "rc-limit", Unit: limitUnit}},
		Params: []bench.Param{
			{Name: "ranks", Kind: bench.Int, Default: "32", Min: 2, Max: 256, Doc: "simulated ranks, each with a processor and an adapter"},
			{Name: "limits", Kind: bench.Ints, Default: "4,8,12,16,20,24,32", Quick: "4,8,16,24,32", Max: 256, Doc: "maximum RC connections of a rank; 0 is always included"},
			{Name: "sizes", Kind: bench.Ints, Default: "8,1KiB,16KiB", Quick: "8,16KiB", Min: 1, Max: 64 << 10, Doc: "bytes that a rank sends to each other rank"},
			testBedParam("ppopp2007"),
		},
		Run: runFunc(simHybrid),
	})
}

// hybridCached is the series of hosts whose adapters cache all contexts.
const hybridCached = "hybrid-cached"

// usOfBlocks returns the unit of an alltoall of blocks of the given size.
func usOfBlocks(size int) string {
	return fmt.Sprintf("%s, blocks of %d B", measure.Microseconds, size)
}

func simHybridClaims() (claims []bench.Statement) {
	limits := bench.Everywhere(limitUnit)
	const paper = "increasing rc-limit delivers better performance"
	for _, size := range []int{8, 16 << 10} {
		because, fewContexts := "", bench.Comparison(nil)
		if size == 8 {
			because = "the rounds of this algorithm wait for each other, so that few contexts matter (hybrid-cached), and over RC the adapters handle an acknowledgement for each message"
			fewContexts = bench.Alike{Series: []string{hybridSeries, hybridCached}, Unit: usOfBlocks(size), At: bench.At(paperRanks, limitUnit), Limit: bench.AtMost(1.1)}
		}
		claims = append(claims, bench.Statement{
			Sentence: fmt.Sprintf("With the paper's costs on 32 ranks the hybrid alltoall of blocks of %d B takes at most 0.95 times as long with RC to all ranks as with UD to all.", size),
			Paper:    paper,
			Compare:  bench.Growth{Of: []string{hybridSeries}, Unit: usOfBlocks(size), At: limits, Limit: bench.AtMost(0.95)}, Exact: true, Because: because, Evidence: fewContexts,
		}, bench.Statement{
			Sentence: fmt.Sprintf("With blocks of %d B it takes no longer with more RC connections, at each step (within 5 %%).", size),
			Paper:    paper,
			Compare:  bench.Growth{Of: []string{hybridSeries}, Unit: usOfBlocks(size), At: limits, Step: true, Limit: bench.AtMost(1.05)}, Exact: true, Because: because, Evidence: fewContexts,
		})
	}
	return append(claims, bench.Statement{
		Source:   bench.Adapter,
		Sentence: "If the adapter caches all contexts, RC to all ranks takes less time than otherwise, for all sizes.",
		Compare: bench.All{bench.Ratio{Of: []string{hybridCached}, Over: []string{hybridSeries}, Unit: usOfBlocks(8), At: bench.At(paperRanks, limitUnit), Limit: bench.AtMost(1)},
			bench.Ratio{Of: []string{hybridCached}, Over: []string{hybridSeries}, Unit: usOfBlocks(16 << 10), At: bench.At(paperRanks, limitUnit), Limit: bench.AtMost(1)}}, Exact: true,
		Because: "the rounds wait for each other, and the order in which ranks are late varies with the costs",
	})
}

func simHybrid(ctx context.Context, r *run) error {
	beds, limits := r.testBeds(), slices.Compact(slices.Sorted(slices.Values(append([]int{0}, r.Ints("limits")...))))
	r.Plan(len(beds) * len(limits))
	for _, bed := range beds {
		cached := bed.Costs
		cached.Contexts, cached.ContextMiss = 0, 0
		for _, limit := range limits {
			r.Step("rc-limit %d on %s", limit, bed.Name)
			for _, size := range r.Ints("sizes") {
				for _, v := range []struct {
					series string
					costs  simulated.Costs
				}{{hybridSeries, bed.Costs}, {hybridCached, cached}} {
					if err := ctx.Err(); err != nil {
						return err
					}
					us, err := simulateAlltoall(simulated.Options{Hosts: r.Int("ranks"), Costs: v.costs}, mpi.Options{Net: mpi.Hybrid, RCLimit: limit}, "hybrid", size)
					if err != nil {
						return fmt.Errorf("rc-limit %d: %w", limit, err)
					}
					r.Emit(bench.Row{Series: onTestBed(v.series, bed), X: float64(limit), XUnit: limitUnit, Y: us, YUnit: usOfBlocks(size)})
				}
			}
		}
	}
	return nil
}

func init() {
	const unit = "connections"
	memory := func(of, over string, at bench.Points, limit bench.Limit) bench.Comparison {
		return bench.Ratio{Of: []string{of}, Over: []string{over}, Unit: measure.Bytes, At: at, Limit: limit}
	}
	bench.Register(&bench.Experiment{
		Name:   "sim-qp-memory",
		Source: "RCUD fig. 6a",
		Layer:  bench.LayerMPI,
		Claims: []bench.Statement{{
			Sentence: "The memory of a rank that has sent 8 B to each other rank grows linearly with its RC connections (within 10 % of a line).",
			Paper:    "an upward linear trend of memory usage with the number of connections",
			Compare:  memory(growthMemoryRC, qpMemoryLine, bench.Everywhere(unit), bench.Within(0.9, 1.1)),
		}, {
			Source:   "RCUD sec. 3.2",
			Sentence: "It takes more memory than over UD, with all numbers of ranks.",
			Paper:    "the motive of UD",
			Compare:  memory(growthMemoryRC, growthMemoryUD, bench.Everywhere(unit), bench.AtLeast(1)),
		}, {
			Source:   bench.Adapter,
			Sentence: "A connection takes more memory than a peer over UD.",
			Compare:  bench.Value{Of: []string{qpMemoryRatio}, Unit: perPeer, At: bench.Everywhere(unit), Limit: bench.AtLeast(1)},
		}},
		Axes: []bench.Axis{{Name: "connections", Unit: unit}},
		Params: []bench.Param{{Name: "ranks", Kind: bench.Ints, Default: "16,32,64,128", Quick: "16,32,64", Min: 4, Max: 256,
			Doc: "simulated ranks, each connected to all others"}},
		Run: runFunc(func(ctx context.Context, r *run) error { return simQPMemory(ctx, r, unit) }),
	})
}

// Series and unit of sim-qp-memory.
const (
	qpMemoryLine  = "memory-rc-line" // through the first and the last point
	qpMemoryRatio = "rc-over-ud"
	perPeer       = "times the growth a rank"
)

func simQPMemory(ctx context.Context, r *run, unit string) error {
	counts := slices.Compact(slices.Sorted(slices.Values(r.Ints("ranks"))))
	if len(counts) < 2 {
		return fmt.Errorf("ranks=%v: a line needs two points", counts)
	}
	r.Plan(len(counts))
	memory := map[string][]float64{}
	for _, n := range counts {
		r.Step("memory of %d simulated ranks", n)
		for _, v := range []struct {
			series, algorithm string
			net               mpi.Net
		}{{growthMemoryRC, "direct", mpi.RDMA}, {growthMemoryUD, "ud", mpi.UD}} {
			if err := ctx.Err(); err != nil {
				return err
			}
			o := mpi.Options{Net: v.net, Algorithms: map[string]string{"alltoall": v.algorithm}}
			s, err := simulateSetUp(simulated.Options{Hosts: n, Costs: simulated.InfiniHost}, o, func(w mpi.World) error { return growthAlltoall(w, 0)() })
			if err != nil {
				return fmt.Errorf("%s on %d ranks: %w", v.series, n, err)
			}
			memory[v.series] = append(memory[v.series], s.memory)
			r.Emit(bench.Row{Series: v.series, X: float64(n - 1), XUnit: unit, Y: s.memory, YUnit: measure.Bytes})
		}
	}
	last := len(counts) - 1
	slope := func(series string) float64 {
		return (memory[series][last] - memory[series][0]) / float64(counts[last]-counts[0])
	}
	for i, n := range counts {
		r.Emit(bench.Row{Series: qpMemoryLine, X: float64(n - 1), XUnit: unit, Y: memory[growthMemoryRC][0] + slope(growthMemoryRC)*float64(counts[i]-counts[0]), YUnit: measure.Bytes})
	}
	r.Emit(bench.Row{Series: qpMemoryRatio, X: float64(counts[last] - 1), XUnit: unit, Y: slope(growthMemoryRC) / slope(growthMemoryUD), YUnit: perPeer})
	return nil
}
