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
	register(&bench.Experiment{
		Name:   "a2a-hybrid",
		Source: "RCUD fig. 7b",
		Layer:  bench.LayerMPI,
		Claims: a2aHybridClaims(),
		Axes:   []bench.Axis{{Name: "rc-limit", Unit: limitUnit}},
		Params: []bench.Param{
			{Name: "ranks", Kind: bench.Int, Default: "16", Quick: "8", Min: 2, Max: 64, Doc: "ranks, each a process"},
			{Name: "limits", Kind: bench.Ints, Default: "2,4,8,12,16", Quick: "2,6,8", Max: 64, Doc: "maximum RC connections of a rank; 0 is always included"},
			{Name: "size", Kind: bench.Int, Default: "16KiB", Min: 1, Max: 1 << 20, OfClaim: true, Doc: "bytes that a rank sends to each other rank"},
			icmParam("off,"+icmHybrid, "off,4:50%"),
			{Name: "memory", Kind: bench.Ints, Default: "8,32,61", Quick: "4,16", Min: 2, Max: 64, Doc: "numbers of ranks for the memory measurement, with all RC connections and with UD alone, idle, after a byte to all, and after a flood of messages"},
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

// icmHybrid has half as many contexts as a rank has connections, as in the paper's figure on 32
// ranks.
const icmHybrid = "8:50%"

// onDemand is the cause of memory that is not larger over RC.
const onDemand = "the buffers of both grow with the traffic, and the contexts of connections add little to them"

func a2aHybridClaims() (claims []bench.Statement) {
	limits, counts := bench.Everywhere(limitUnit), bench.Everywhere(ranksUnit)
	for _, model := range []struct{ word, because string }{
		{icmOff, ""},
		{icmHybrid, "beyond the entries of the cache each further connection adds misses, so that the best rc-limit is in between"},
	} {
		of := []string{withICM(hybridSeries, model.word)}
		claims = append(claims, bench.Statement{
			Sentence: withModel(model.word, "The hybrid alltoall takes at most 0.95 times as long with RC to all ranks as with UD to all."),
			Paper:    "increasing rc-limit delivers better performance",
			Compare:  bench.Growth{Of: of, Unit: measure.Microseconds, At: limits, Limit: bench.AtMost(0.95)}, Because: model.because,
		}, bench.Statement{
			Sentence: withModel(model.word, "It takes no longer with more RC connections, at each step (within 5 %)."),
			Paper:    "increasing rc-limit delivers better performance",
			Compare:  bench.Growth{Of: of, Unit: measure.Microseconds, At: limits, Step: true, Limit: bench.AtMost(1.05)}, Because: model.because,
		})
	}
	claims = append(claims, bench.Statement{
		Sentence: "A rank takes more memory with more RC connections, from UD to all ranks to RC to all.",
		Paper:    "increases resources",
		Compare:  bench.Growth{Of: []string{heapSeries}, Unit: measure.Bytes, At: limits, Limit: bench.AtLeast(1)},
		Because:  onDemand,
	})
	for _, c := range []struct {
		after mpibench.Traffic
		when  string
	}{{mpibench.Idle, "before it has communicated"}, {mpibench.OneByte, "after a byte to each other rank"}, {mpibench.Flood, "after 16 messages of 4 KiB to each other rank, which receive late"}} {
		claims = append(claims, bench.Statement{
			Source:   "RCUD sec. 3.2",
			Sentence: fmt.Sprintf("A rank takes more memory with RC to all ranks than with UD %s, on every number of ranks.", c.when),
			Paper:    "the motive of UD",
			Compare: bench.Ratio{Of: []string{memorySeries("rc", c.after)}, Over: []string{memorySeries("ud", c.after)}, Unit: measure.Bytes, At: counts,
				Limit: bench.AtLeast(1)},
			Because: onDemand, Exact: c.after != mpibench.Flood,
		}, bench.Statement{
			Source:   "RCUD sec. 3.2",
			Sentence: fmt.Sprintf("With UD alone, memory %s does not grow with the number of ranks (within 10 %%).", c.when),
			Paper:    "few queue pairs, typically one",
			Compare:  bench.Flat{Of: []string{memorySeries("ud", c.after)}, Unit: measure.Bytes, At: counts, Limit: bench.AtMost(1.1)},
			Because:  "there is one queue pair, but the state of each peer for reliable delivery, and the messages that wait for their receiver, grow with the peers",
			Exact:    c.after != mpibench.Flood,
		})
	}
	var most bench.All
	for _, ranks := range []int{8, 32, 61} {
		most = append(most, bench.Value{Of: []string{memorySeries("ud", mpibench.Idle), memorySeries("ud", mpibench.OneByte)}, Unit: measure.Bytes,
			At: bench.At(float64(ranks), ranksUnit), Limit: bench.AtMost(1.5e6 + float64(ranks)*1024)})
	}
	return append(claims, bench.Statement{
		Source:   bench.Adapter,
		Sentence: "With UD alone, a rank takes at most 1.5 MB of memory and 1 KiB for each rank, idle and after a byte to each other rank.",
		Compare:  most, Exact: true,
	})
}

// memorySeries returns the series of a rank's memory by the given transport after traffic.
func memorySeries(by string, after mpibench.Traffic) string {
	return fmt.Sprintf("%s-%s-%s", heapSeries, by, after)
}

func a2aHybrid(ctx context.Context, r *run) error {
	limits := slices.Sorted(slices.Values(append([]int{0}, r.Ints("limits")...)))
	r.Plan(len(r.Words("icm")) + len(r.Ints("memory")))
	for _, c := range r.contextCaches() {
		if err := hybridTimes(ctx, r, limits, c); err != nil {
			return err
		}
	}
	return ranksMemory(ctx, r)
}

// hybridTimes measures the time with each limit, with a model of the context cache, and the memory
// without one.
func hybridTimes(ctx context.Context, r *run, limits []int, c contextCache) error {
	ranks := r.Int("ranks")
	r.Step("%d ranks, context cache %s", ranks, c.word)
	env, err := c.environment(ctx, r, ranks, r.Int("size"))
	if err != nil {
		return err
	}
	var variants []a2aVariant
	for _, limit := range limits {
		variants = append(variants, a2aVariant{hybridSeries, mpibench.Alltoall{Algorithm: "hybrid", Net: mpi.Hybrid, RCLimit: limit}})
	}
	all, err := openA2A(ctx, ranks, env, variants)
	defer all.close()
	if err != nil {
		return err
	}
	var set seriesSet
	for _, s := range all {
		set.addSeries(withICM(s.series, c.word), s.job.Collective("Alltoall", r.Int("size"), r.Int("iters")))
	}
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return err
	}
	for i, limit := range limits {
		stats := measure.Summarize(samples[i].Figures)
		r.Emit(bench.Row{Series: samples[i].Series, X: float64(limit), XUnit: limitUnit, Y: measure.Median(samples[i].Figures), YUnit: measure.Microseconds, Rounds: samples[i].Figures, Stats: &stats})
		if c.word != icmOff {
			continue
		}
		memory, err := all[i].job.Memory(ctx, mpibench.OneByte)
		if err != nil {
			return err
		}
		r.Emit(bench.Row{Series: heapSeries, X: float64(limit), XUnit: limitUnit, Y: memory.Heap, YUnit: measure.Bytes})
	}
	return nil
}

// ranksMemory measures the memory of a rank in jobs of increasing size, by connections and by UD:
// before the ranks communicate, after a byte to all, and after a flood.
func ranksMemory(ctx context.Context, r *run) error {
	counts := slices.Sorted(slices.Values(r.Ints("memory")))
	for _, ranks := range counts {
		r.Step("memory of %d ranks", ranks)
		for _, s := range []a2aVariant{
			{"ud", mpibench.Alltoall{Algorithm: "ud", Net: mpi.UD}},
			{"rc", mpibench.Alltoall{Algorithm: "direct"}},
		} {
			if err := a2aMemory(ctx, r, ranks, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// a2aMemory measures the memory of a rank with one variant.
func a2aMemory(ctx context.Context, r *run, ranks int, s a2aVariant) error {
	all, err := openA2A(ctx, ranks, "", []a2aVariant{s})
	defer all.close()
	if err != nil {
		return err
	}
	for _, after := range []mpibench.Traffic{mpibench.Idle, mpibench.OneByte, mpibench.Flood} {
		memory, err := all[0].job.Memory(ctx, after)
		if err != nil {
			return err
		}
		r.Emit(bench.Row{Series: memorySeries(s.series, after), X: float64(ranks), XUnit: ranksUnit, Y: memory.Heap, YUnit: measure.Bytes})
	}
	return nil
}
