// Command bench runs experiments that measure the adapter on this machine,
// with plain UDP as the baseline in the same run.
//
//	go run ./cmd/bench [-v] [--out DIR]      the tour, at most 60 s: processes on this machine, one screen that
//	                                         compares every layer with sockets, Open MPI and bare UDP;
//	                                         all figures in DIR/tour.txt, and with -v on stdout
//	bench list [NAME...] [-v] [--json]       all experiments with source and claim, or those selected by a prefix,
//	                                         a pattern, or a paper's figure: sdp, 'sdp-*', "RCUD fig. 6a"
//	bench run NAME... [--quick] [--json] [--out DIR] [--set key=value ...]
//	bench report [--out DIR]                 all experiments, and one HTML page with charts, tables and verdicts,
//	                                         updated after each experiment; --from DIR creates it from saved files
//
// It also implements well-known MPI benchmarks, with their options and
// output formats. They run on the ranks of softrnic mpirun, or on -n processes that
// they start themselves:
//
//	bench osu latency [-m MAX] [-i N] [-c] ...   the OSU micro-benchmarks
//	bench imb PingPong [-msglog MIN:MAX] ...     the Intel MPI Benchmarks, MPI-1 part
//	bench nas is [--class S]                     the NAS Parallel Benchmarks is, cg and ep
//
// With --json, stdout has one object per line: experiment, series, x,
// x_unit, y, y_unit, and if applicable rounds, n, p50, p99, min, max, baseline
// and ratio (this series over the series named baseline, at the same x and in
// the same run), or absent (the reason for which the series has no figure); and
// last, for each experiment, a line with experiment, claim, holds (no statement
// is refuted, and one holds) and statements with their outcomes.
//
// bench list shows each statement beside the paper's number, and the outcome of
// the last recorded run; bench record DIR replaces that run.
//
// Progress and the description of the machine go to stderr. The exit status is
// 1 if an experiment could not run, data was wrong, a check of the tour failed, or
// a file could not be written, and 2 for a usage error. A claim that does not hold
// is not an error.
package main

import (
	"context"
	"os"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	_ "github.com/softrnic/softrnic/cmd/bench/internal/experiments"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/cmd/internal/cmdline"
)

func main() {
	proc.ServeIfWorker() // experiments start this program as their workers
	ctx, stop := cmdline.NotifyContext(context.Background())
	a := &app{registry: &bench.Default, stdout: os.Stdout, stderr: os.Stderr, tourTime: tourTime, saveDir: "bench-out"}
	status := a.runCommandLine(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}
