package experiments

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/peers"
)

// Series of Open MPI, over TCP and in its own shared memory.
const (
	overOpenMPI   = "openmpi-tcp"
	sharedOpenMPI = "openmpi-shared"
)

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
		emitAbsentMPI(r, "not selected (--set beside=openmpi)")
		return openMPI{}, nil
	}
	o.program, err = peers.NewOpenMPI(ctx)
	if err == nil {
		_, err = o.program.Measure(ctx, peers.OverTCP, 2, "latency", 8, 1)
	}
	if err == nil {
		return o, nil
	}
	o.close()
	switch {
	case ctx.Err() != nil:
		return openMPI{}, context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		emitAbsentMPI(r, "not installed here ("+openMPIPackages+")")
	default:
		emitAbsentMPI(r, fmt.Sprintf("does not work (%s): %v", openMPIPackages, err))
	}
	return openMPI{}, nil
}

// emitAbsentMPI emits the reason for which Open MPI is not measured.
func emitAbsentMPI(r *run, reason string) {
	r.EmitAbsent(overOpenMPI, "%s", reason)
	r.EmitAbsent(sharedOpenMPI, "%s", reason)
}

// addTo adds a test of measure.c of package peers over TCP to l. Each round starts new processes.
func (o openMPI) addTo(l *seriesSet, ranks int, test string, bytes, rounds int) {
	o.addSeries(l, overOpenMPI, peers.OverTCP, ranks, test, bytes, rounds)
}

// addSharedTo is an addTo for shared memory.
func (o openMPI) addSharedTo(l *seriesSet, ranks int, test string, bytes, rounds int) {
	o.addSeries(l, sharedOpenMPI, peers.OverShared, ranks, test, bytes, rounds)
}

func (o openMPI) addSeries(l *seriesSet, series string, over peers.Network, ranks int, test string, bytes, rounds int) {
	if o.program == nil {
		return
	}
	l.addOpponent(series, openMPIPackages, func(ctx context.Context) (float64, error) {
		return o.program.Measure(ctx, over, ranks, test, bytes, rounds)
	})
}

func (o openMPI) close() {
	if o.program != nil {
		_ = o.program.Close() // removes a temporary directory
	}
}
