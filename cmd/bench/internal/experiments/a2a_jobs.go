package experiments

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
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
func a2aSizes(ctx context.Context, r *bench.Run, ranks int, variants []a2aVariant, evaluate func(size int, samples []bench.Sample)) error {
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
		samples, err := set.runAlternating(ctx, r.Int("rounds"))
		if err != nil {
			return err
		}
		unit := fmt.Sprintf("%s on %d ranks", measure.Microseconds, ranks)
		r.EmitAgainst(bench.Point{X: float64(size), XUnit: measure.Bytes, YUnit: unit}, samples[0], samples[1:]...)
		evaluate(size, samples)
	}
	return nil
}
