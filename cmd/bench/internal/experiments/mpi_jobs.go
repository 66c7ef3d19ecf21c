package experiments

import (
	"context"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
)

// jobs are the targets of the experiments with MPI: the first is over TCP, the baseline.
type jobs []*mpibench.Job

// overParam returns the parameter that selects the transports.
func overParam(defaults string) bench.Param {
	return bench.Param{
		Name: "over", Kind: bench.Words, Default: defaults, Choices: []string{"fast", "rdma", "shared"},
		Doc: "transports besides mpi-tcp: the RDMA fast path with polling ranks, sends and receives, or these with shared memory for collectives",
	}
}

// openJobs opens a job over TCP and those of the parameter over. The caller must close them,
// also after an error.
func openJobs(ctx context.Context, r *bench.Run, ranks int) (all jobs, err error) {
	transports := []mpibench.Transport{mpibench.TCP}
	for _, word := range r.Words("over") {
		transports = append(transports, mpibench.Transport("mpi-"+word))
	}
	return openTransports(ctx, ranks, transports...)
}

// openTransports opens a job for each transport. The caller must close them, also after an
// error.
func openTransports(ctx context.Context, ranks int, transports ...mpibench.Transport) (all jobs, err error) {
	for _, over := range transports {
		job, err := mpibench.Open(ctx, mpibench.Config{Transport: over, Ranks: ranks})
		if err != nil {
			return all, fmt.Errorf("%d ranks over %s: %w", ranks, over, err)
		}
		all = append(all, job)
	}
	return all, nil
}

// jobFor returns the job of a transport, which must exist.
func (all jobs) jobFor(c mpibench.Transport) *mpibench.Job {
	return all[slices.IndexFunc(all, func(j *mpibench.Job) bool { return j.Transport == c })]
}

func (all jobs) close() {
	for _, j := range all {
		j.Close()
	}
}

// rankPoint opens jobs on the given number of ranks, measures them alternately with the series
// that addSeries adds, and emits the samples.
func rankPoint(ctx context.Context, r *bench.Run, ranks int, unit string, addSeries func(jobs, *seriesSet)) ([]bench.Sample, error) {
	all, err := openJobs(ctx, r, ranks)
	defer all.close()
	if err != nil {
		return nil, err
	}
	var set seriesSet
	addSeries(all, &set)
	samples, err := set.runAlternating(ctx, r.Int("rounds"))
	if err != nil {
		return nil, err
	}
	r.EmitAgainst(bench.Point{X: float64(ranks), XUnit: ranksUnit, YUnit: unit}, samples[0], samples[1:]...)
	return samples, nil
}

// eachRatioOver calls f with the ratio over baseline of each series of our own transports
// except TCP.
func eachRatioOver(samples []bench.Sample, baseline string, f func(series string, ratio float64)) {
	for _, c := range mpibench.Transports() {
		if ratio, ok := medianRatioOf(samples, string(c), baseline); ok && c != mpibench.TCP {
			f(string(c), ratio)
		}
	}
}

// addTo adds all jobs to l.
func (all jobs) addTo(l *seriesSet, round func(*mpibench.Job) measure.Round) {
	for _, j := range all {
		l.addSeries(string(j.Transport), round(j))
	}
}
