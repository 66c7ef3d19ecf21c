package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
)

// Words of the parameter over for datagrams, and for RC connections to some ranks and datagrams to
// the others.
const (
	udWord     = "ud"
	hybridWord = "hybrid"
)

// rcLimitParam returns the parameter of the RC connections of a rank over hybrid.
func rcLimitParam() bench.Param {
	return bench.Param{Name: "rc-limit", Kind: bench.Ints, Default: "4,8", Quick: "2", Max: 64,
		Doc: "over hybrid: maximum RC connections of a rank, besides 0 and the number of ranks; larger limits are left out"}
}

// onRanks returns the unit of a figure on the axis of the RC connections.
func onRanks(unit string, ranks int) string { return fmt.Sprintf("%s on %d ranks", unit, ranks) }

// netClaims returns the statements about the application over RC, UD and hybrid, with 16 and
// 32 ranks. They are our own: the paper leaves the evaluation of applications to future work.
func (k nasExperiment) netClaims() []bench.Statement {
	rc, ud, hybrid := []string{string(mpibench.RDMA)}, []string{string(mpibench.UD)}, []string{string(mpibench.Hybrid)}
	many := bench.From(16, ranksUnit)
	growth := func(unit string, step bool, limit bench.Limit) bench.Comparison {
		var all bench.All
		for _, ranks := range []int{16, 32} {
			all = append(all, bench.Growth{Of: hybrid, Unit: onRanks(unit, ranks), At: bench.Between(0, float64(ranks), limitUnit), Ends: true, Step: step, Limit: limit})
		}
		return all
	}
	return []bench.Statement{
		{
			Source:   bench.Adapter,
			Sentence: "On 16 and more ranks it has at least 0.9 times the rate over UD that it has over RC.",
			Compare:  bench.Ratio{Of: ud, Over: rc, Unit: operations, At: many, Limit: bench.AtLeast(0.9)},
		},
		{
			Source:   bench.Adapter,
			Sentence: "On 16 and on 32 ranks it has over hybrid at least the rate with RC connections to all ranks that it has with UD to all.",
			Compare:  growth(operations, false, bench.AtLeast(1)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "On 16 and on 32 ranks its rate over hybrid does not fall with more RC connections, at each step (within 5 %).",
			Compare:  growth(operations, true, bench.AtLeast(0.95)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "On 16 and more ranks a rank takes at most as much memory over UD as over RC.",
			Compare:  bench.Ratio{Of: ud, Over: rc, Unit: measure.Bytes, At: many, Limit: bench.AtMost(1)},
		},
		{
			Source:   bench.Adapter,
			Sentence: "On 16 and on 32 ranks it takes more memory over hybrid with RC connections to all ranks than with UD to all.",
			Compare:  growth(measure.Bytes, false, bench.AtLeast(1)),
		},
		{
			Source:   bench.Adapter,
			Sentence: "On 16 and on 32 ranks its memory over hybrid does not fall with more RC connections, at each step (within 5 %).",
			Compare:  growth(measure.Bytes, true, bench.AtLeast(0.95)),
			Because:  "a rank over hybrid has the buffers of both transports, and not more of them with more connections",
		},
	}
}

// A nasPoint is the jobs of one number of ranks.
type nasPoint struct {
	ranks  int
	all    jobs // on the axis of ranks, TCP first
	hybrid jobs // on the axis of RC connections, by increasing limit
}

// openNASPoint opens the jobs of the parameters over and rc-limit. The caller must close the
// point, also after an error.
func openNASPoint(ctx context.Context, r *run, ranks int) (p nasPoint, err error) {
	p.ranks = ranks
	transports := []mpibench.Transport{mpibench.TCP}
	for _, word := range r.Words("over") {
		if word != hybridWord {
			transports = append(transports, mpibench.Transport("mpi-"+word))
		}
	}
	if p.all, err = openTransports(ctx, ranks, transports...); err != nil || !slices.Contains(r.Words("over"), hybridWord) {
		return p, err
	}
	for _, limit := range hybridLimits(r.Ints("rc-limit"), ranks) {
		job, err := mpibench.Open(ctx, mpibench.Config{Transport: mpibench.Hybrid, Ranks: ranks, RCLimit: limit})
		if err != nil {
			return p, fmt.Errorf("%d ranks over %s with %d RC connections: %w", ranks, mpibench.Hybrid, limit, err)
		}
		p.hybrid = append(p.hybrid, job)
	}
	return p, nil
}

// hybridLimits returns the limits below the number of ranks in increasing order, between 0, UD to all ranks,
// and that number, RC to all.
func hybridLimits(limits []int, ranks int) []int {
	all := append([]int{0, ranks}, limits...)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(limit int) bool { return limit > ranks })
}

func (p nasPoint) close() {
	p.all.close()
	p.hybrid.close()
}

// measureKernel runs the kernel over all jobs alternately, with the opponents that addOpponents
// adds, and then measures the memory of a rank.
func (p nasPoint) measureKernel(ctx context.Context, r *run, kernel string, class nas.Class, addOpponents func(*seriesSet)) error {
	var set seriesSet
	round := func(j *mpibench.Job) measure.Round { return j.Kernel(kernel, class) }
	p.all.addTo(&set, round)
	p.hybrid.addTo(&set, round)
	addOpponents(&set)
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return err
	}
	first, behind := len(p.all), len(p.all)+len(p.hybrid)
	r.emitSamples(&set, bench.Point{X: float64(p.ranks), XUnit: ranksUnit, YUnit: operations}, slices.Concat(samples[:first], samples[behind:]))
	for i, job := range slices.Concat(p.all, p.hybrid) {
		memory, err := job.Memory(ctx, mpibench.OneByte)
		if err != nil {
			return err
		}
		if job.Transport != mpibench.Hybrid {
			r.Emit(bench.Row{Series: string(job.Transport), X: float64(p.ranks), XUnit: ranksUnit, Y: memory.Heap, YUnit: measure.Bytes})
			continue
		}
		row := bench.Row{Series: string(mpibench.Hybrid), X: float64(job.RCLimit), XUnit: limitUnit}
		row.Y, row.YUnit, row.Rounds = measure.Median(samples[i].Figures), onRanks(operations, p.ranks), samples[i].Figures
		r.Emit(row)
		row.Y, row.YUnit, row.Rounds = memory.Heap, onRanks(measure.Bytes, p.ranks), nil
		r.Emit(row)
	}
	return nil
}
