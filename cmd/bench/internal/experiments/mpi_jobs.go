package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
)

// jobs are the subjects of the experiments with MPI: over TCP, which is the
// baseline, and over others.
type jobs []*mpibench.Job

// overParam is the parameter that says which.
func overParam(defaults string) bench.Param {
	return bench.Param{
		Name: "over", Kind: bench.Words, Default: defaults, Choices: []string{"fast", "rdma", "shared"},
		Doc: "beside mpi-tcp: the RDMA fast path, for which ranks poll, sends and receives, or these and collective calls in memory that ranks have in common",
	}
}

// openJobs opens a job over TCP and those of the parameter over. The caller closes
// them, also after an error.
func openJobs(ctx context.Context, r *bench.Run, ranks int) (all jobs, err error) {
	carriers := []mpibench.Transport{mpibench.TCP}
	for _, word := range r.Words("over") {
		carriers = append(carriers, mpibench.Transport("mpi-"+word))
	}
	return openTransports(ctx, ranks, carriers...)
}

// openTransports opens a job over each. The caller closes them, also after an error.
func openTransports(ctx context.Context, ranks int, carriers ...mpibench.Transport) (all jobs, err error) {
	for _, over := range carriers {
		job, err := mpibench.Open(ctx, mpibench.Config{Transport: over, Ranks: ranks})
		if err != nil {
			return all, fmt.Errorf("%d ranks over %s: %w", ranks, over, err)
		}
		all = append(all, job)
	}
	return all, nil
}

// jobFor is the job over a carrier, which there is.
func (all jobs) jobFor(c mpibench.Transport) *mpibench.Job {
	return all[slices.IndexFunc(all, func(j *mpibench.Job) bool { return j.Transport == c })]
}

func (all jobs) close() {
	for _, j := range all {
		j.Close()
	}
}

// rankPoint opens jobs of so many ranks, lets them take turns with what else
// lineUp adds, and emits what is measured.
func rankPoint(ctx context.Context, r *bench.Run, ranks int, unit string, lineUp func(jobs, *seriesSet)) ([]bench.Sample, error) {
	all, err := openJobs(ctx, r, ranks)
	defer all.close()
	if err != nil {
		return nil, err
	}
	var turns seriesSet
	lineUp(all, &turns)
	samples, err := turns.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return nil, err
	}
	r.EmitAgainst(bench.Point{X: float64(ranks), XUnit: ranksUnit, YUnit: unit}, samples[0], samples[1:]...)
	return samples, nil
}

// eachRatioOver calls hold with what our own subjects but TCP measured, over a
// baseline, of those that took part.
func eachRatioOver(samples []bench.Sample, baseline string, hold func(series string, ratio float64)) {
	for _, c := range mpibench.Transports() {
		if ratio, ok := medianRatioOf(samples, string(c), baseline); ok && c != mpibench.TCP {
			hold(string(c), ratio)
		}
	}
}

// addTo lets all of them take turns.
func (all jobs) addTo(l *seriesSet, round func(*mpibench.Job) measure.Round) {
	for _, j := range all {
		l.addSeries(string(j.Transport), round(j))
	}
}
