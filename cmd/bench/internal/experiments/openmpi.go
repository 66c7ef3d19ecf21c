package experiments

import (
	"context"
	"errors"
	"os/exec"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
)

// overOpenMPI is the series of Open MPI over TCP.
const overOpenMPI = "openmpi-tcp"

// openMPI measures Open MPI, if it is installed, as a baseline of our own MPI. An experiment
// adds it behind its own targets:
//
//	other, err := openOpenMPI(ctx, r) // r has the parameter besideOpenMPI
//	defer other.close()
//	...
//	all.addTo(&set, ...)
//	other.addTo(&set, ranks, "alltoall", size, iters)
//	samples, err := r.measurePoint(ctx, &set, at)
type openMPI struct {
	program *peers.OpenMPI // nil if Open MPI is not measured
}

// openMPIPackages are the Debian packages with Open MPI and its compiler.
const openMPIPackages = "Debian: openmpi-bin, libopenmpi-dev"

// besideOpenMPI returns the parameter that selects whether Open MPI is measured.
func besideOpenMPI() bench.Param {
	return bench.Param{
		Name: "beside", Kind: bench.Words, Default: "openmpi", Choices: []string{"openmpi", "nothing"},
		Doc: "other implementation to run, if installed",
	}
}

// openOpenMPI compiles and tests the program that measures Open MPI. If Open MPI is not
// installed or does not work, a row says so and the experiment continues without it. The caller
// must close the result.
func openOpenMPI(ctx context.Context, r *run) (o openMPI, err error) {
	if !slices.Contains(r.Words("beside"), "openmpi") {
		r.EmitAbsent(overOpenMPI, "not selected (--set beside=openmpi)")
		return openMPI{}, nil
	}
	o.program, err = peers.NewOpenMPI(ctx)
	if err == nil {
		_, err = o.program.Measure(ctx, 2, "latency", 8, 1)
	}
	if err == nil {
		return o, nil
	}
	o.close()
	switch {
	case ctx.Err() != nil:
		return openMPI{}, context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		r.EmitAbsent(overOpenMPI, "not installed here (%s)", openMPIPackages)
	default:
		r.EmitAbsent(overOpenMPI, "does not work (%s): %v", openMPIPackages, err)
	}
	return openMPI{}, nil
}

// addTo adds a test of measure.c of package peers to l. Each round starts new processes.
func (o openMPI) addTo(l *seriesSet, ranks int, test string, bytes, rounds int) {
	if o.program == nil {
		return
	}
	l.addOpponent(overOpenMPI, func(ctx context.Context) (float64, error) {
		return o.program.Measure(ctx, ranks, test, bytes, rounds)
	})
}

func (o openMPI) close() {
	if o.program != nil {
		_ = o.program.Close() // removes a temporary directory
	}
}
