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

// overOpenMPI is the series of what Open MPI measures, over TCP.
const overOpenMPI = "openmpi-tcp"

// openMPI is Open MPI beside MPI of our own, where it is installed. An experiment
// lines it up behind its own subjects, and holds these against it:
//
//	other, err := openOpenMPI(ctx, r) // r has the parameter besideOpenMPI
//	defer other.close()
//	...
//	all.lineUp(&turns, ...)
//	other.lineUp(&turns, ranks, "alltoall", size, iters)
//	samples, err := turns.run(ctx, r.Int("rounds"))
//	...
//	if ratio, ok := between(samples, "mpi-rdma", overOpenMPI); ok {
//		j.atMost("mpi-rdma over Open MPI", ratio, 1)
//	}
//	...
//	other.explain(&j) // if it is not there
type openMPI struct {
	program *peers.OpenMPI // nil if it takes no part
	absence string         // it does not
}

// besideOpenMPI is the parameter that says whether it takes part.
func besideOpenMPI() bench.Param {
	return bench.Param{
		Name: "beside", Kind: bench.Words, Default: "openmpi", Choices: []string{"openmpi", "nothing"},
		Doc: "what to run as well, if it is installed",
	}
}

// openOpenMPI compiles the program that measures it, and tries it out: where Open
// MPI is not installed, or does not work, the experiment goes on without. The
// caller closes it.
func openOpenMPI(ctx context.Context, r *bench.Run) (o openMPI, err error) {
	if !slices.Contains(r.Words("beside"), "openmpi") {
		return openMPI{absence: "Open MPI was left out"}, nil
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
		o.absence = "Open MPI does not work here: " + err.Error()
	}
	o.close()
	o.program = nil
	return o, nil
}

// addTo has it take turns: a test of peers' measure.c, each time in new processes.
func (o openMPI) addTo(l *seriesSet, ranks int, test string, bytes, rounds int) {
	if o.program == nil {
		return
	}
	l.addSeries(overOpenMPI, func(ctx context.Context) (float64, error) {
		return o.program.Measure(ctx, ranks, test, bytes, rounds)
	})
}

// explainAbsence says in the verdict why nothing was compared with Open MPI, if so.
func (o openMPI) explainAbsence(j *evaluation) {
	if o.absence != "" {
		j.addRemark("%s", o.absence)
	}
}

func (o openMPI) close() {
	if o.program != nil {
		_ = o.program.Close() // a temporary folder
	}
}

// medianRatioOf is the median ratio of two series of a point, if both took part.
func medianRatioOf(samples []bench.Sample, subject, baseline string) (ratio float64, ok bool) {
	at := func(series string) int {
		return slices.IndexFunc(samples, func(s bench.Sample) bool { return s.Series == series })
	}
	i, k := at(subject), at(baseline)
	if i < 0 || k < 0 {
		return 0, false
	}
	return measure.MedianRatio(samples[i].Figures, samples[k].Figures), true
}
