package experiments

import (
	"context"
	"errors"
	"os/exec"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
)

// overOpenMPI is the series of Open MPI over TCP.
const overOpenMPI = "openmpi-tcp"

// openMPI measures Open MPI, if it is installed, as a baseline of our own MPI. An experiment
// adds it behind its own targets, and compares them with it:
//
//	other, err := openOpenMPI(ctx, r) // r has the parameter besideOpenMPI
//	defer other.close()
//	...
//	all.addTo(&set, ...)
//	other.addTo(&set, ranks, "alltoall", size, iters)
//	samples, _, err := r.measurePoint(ctx, &set, at)
//	...
//	if ratio, ok := medianRatioOf(samples, "mpi-rdma", overOpenMPI); ok {
//		r.atMost("mpi-rdma over Open MPI", ratio, 1)
//	}
//	...
//	other.explainAbsence(&r.evaluation) // explains if it is not installed
type openMPI struct {
	program *peers.OpenMPI // nil if Open MPI is not measured
	absence string         // reason for a nil program
}

// besideOpenMPI returns the parameter that selects whether Open MPI is measured.
func besideOpenMPI() bench.Param {
	return bench.Param{
		Name: "beside", Kind: bench.Words, Default: "openmpi", Choices: []string{"openmpi", "nothing"},
		Doc: "other implementation to run, if installed",
	}
}

// openOpenMPI compiles and tests the program that measures Open MPI. If Open MPI is not
// installed or does not work, the experiment continues without it. The caller must close the
// result.
func openOpenMPI(ctx context.Context, r *run) (o openMPI, err error) {
	if !slices.Contains(r.Words("beside"), "openmpi") {
		return openMPI{absence: "Open MPI was not selected"}, nil
	}
	o.program, err = peers.NewOpenMPI(ctx)
	if err == nil {
		_, err = o.program.Measure(ctx, 2, "latency", 8, 1)
	}
	switch {
	case err == nil:
		return o, nil
	case ctx.Err() != nil:
		o.close()
		return openMPI{}, context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		o.absence = "Open MPI is not installed here (Debian: openmpi-bin, libopenmpi-dev)"
	default:
		o.absence = "Open MPI failed: " + err.Error()
	}
	o.close()
	o.program = nil
	return o, nil
}

// addTo adds a test of measure.c of package peers to l. Each round starts new processes.
func (o openMPI) addTo(l *seriesSet, ranks int, test string, bytes, rounds int) {
	if o.program == nil {
		return
	}
	l.addSeries(overOpenMPI, func(ctx context.Context) (float64, error) {
		return o.program.Measure(ctx, ranks, test, bytes, rounds)
	})
}

// explainAbsence adds a remark if Open MPI is not measured.
func (o openMPI) explainAbsence(j *evaluation) {
	if o.absence != "" {
		j.addRemark("%s", o.absence)
	}
}

func (o openMPI) close() {
	if o.program != nil {
		_ = o.program.Close() // removes a temporary directory
	}
}

// medianRatioOf returns the median ratio of two series of a point, or false if one was not
// measured.
func medianRatioOf(samples []bench.Sample, target, baseline string) (ratio float64, ok bool) {
	at := func(series string) int {
		return slices.IndexFunc(samples, func(s bench.Sample) bool { return s.Series == series })
	}
	i, k := at(target), at(baseline)
	if i < 0 || k < 0 {
		return 0, false
	}
	return measure.MedianRatio(samples[i].Figures, samples[k].Figures), true
}
