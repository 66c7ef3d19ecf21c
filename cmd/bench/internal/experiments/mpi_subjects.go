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
	carriers := []mpibench.Carrier{mpibench.TCP}
	for _, word := range r.Words("over") {
		carriers = append(carriers, mpibench.Carrier("mpi-"+word))
	}
	return openCarriers(ctx, ranks, carriers...)
}

// openCarriers opens a job over each. The caller closes them, also after an error.
func openCarriers(ctx context.Context, ranks int, carriers ...mpibench.Carrier) (all jobs, err error) {
	for _, over := range carriers {
		job, err := mpibench.Open(ctx, mpibench.Config{Over: over, Ranks: ranks})
		if err != nil {
			return all, fmt.Errorf("%d ranks over %s: %w", ranks, over, err)
		}
		all = append(all, job)
	}
	return all, nil
}

// over is the job over a carrier, which there is.
func (all jobs) over(c mpibench.Carrier) *mpibench.Job {
	return all[slices.IndexFunc(all, func(j *mpibench.Job) bool { return j.Over == c })]
}

func (all jobs) close() {
	for _, j := range all {
		j.Close()
	}
}

// rankPoint opens jobs of so many ranks, lets them take turns with what else
// lineUp adds, and emits what is measured.
func rankPoint(ctx context.Context, r *bench.Run, ranks int, unit string, lineUp func(jobs, *lineup)) ([]bench.Sample, error) {
	all, err := openJobs(ctx, r, ranks)
	defer all.close()
	if err != nil {
		return nil, err
	}
	var turns lineup
	lineUp(all, &turns)
	samples, err := turns.run(ctx, r.Int("rounds"))
	if err != nil {
		return nil, err
	}
	r.EmitAgainst(bench.Point{X: float64(ranks), XUnit: ranksUnit, YUnit: unit}, samples[0], samples[1:]...)
	return samples, nil
}

// oursOver calls hold with what our own subjects but TCP measured, over a
// baseline, of those that took part.
func oursOver(samples []bench.Sample, baseline string, hold func(series string, ratio float64)) {
	for _, c := range mpibench.Carriers() {
		if ratio, ok := between(samples, string(c), baseline); ok && c != mpibench.TCP {
			hold(string(c), ratio)
		}
	}
}

// lineUp lets all of them take turns.
func (all jobs) lineUp(l *lineup, round func(*mpibench.Job) measure.Round) {
	for _, j := range all {
		l.add(string(j.Over), round(j))
	}
}
