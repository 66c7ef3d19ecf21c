// Command bench runs the experiments: what this adapter does on this machine,
// beside what UDP itself does in the same run.
//
//	go run ./cmd/bench                       the tour, at most 60 s: real processes on this machine, one screen of figures
//	bench -v                                 the same with every figure and claim, in a table per layer
//	bench list [NAME...] [-v] [--json]       every experiment with its source and claim; of sdp, of 'sdp-*', or of a
//	                                         paper's figure, "RCUD fig. 6a", those
//	bench run NAME... [--quick] [--json] [--out DIR] [--set key=value ...]
//	bench report [--out DIR]                 every experiment and one HTML page with its charts, tables and verdicts,
//	                                         which is kept up to date while they run; --from DIR makes it of files
//
// And benchmarks of MPI that others know, with their options and in the form of
// their output. They run on the ranks of softrnic mpirun, or of -n processes that
// they start themselves:
//
//	bench osu latency [-m MAX] [-i N] [-c] ...   the OSU micro-benchmarks
//	bench imb PingPong [-msglog MIN:MAX] ...     the Intel MPI Benchmarks, MPI-1 part
//	bench nas is [--class S]                     the NAS Parallel Benchmarks is, cg and ep
//
// With --json there is one object per line on stdout: experiment, series, x,
// x_unit, y, y_unit, and where they apply n, p50, p99, min, max, baseline and
// ratio (this series over the series named baseline, at the same x and in the
// same run); and last, for each experiment, a line with experiment, claim,
// holds (true or false) and why.
//
// Progress and the description of the machine go to stderr. The exit status is
// 1 when an experiment could not run, an answer was wrong, or a file could not
// be written, and 2 when the command line makes no sense; never because a claim
// did not hold.
package main
