// Package osu implements the OSU Micro-Benchmarks for MPI with their names, their
// options and their output format (version 7.4), so that tools which parse
// the original output work: point-to-point, blocking collectives, and one-sided.
//
//	t, err := osu.Find("latency")           // osu_latency
//	o := osu.Defaults(t)
//	o.Max, o.Out = 8192, os.Stdout
//	rows, err := osu.Run(world.Comm, t, o)  // by all ranks; rank 0 has the rows
//
// From the command line: go run ./cmd/bench osu latency -m 8192 -n 2.
//
//	options.go     options, and the list of tests
//	run.go         the loop over sizes
//	latency.go     latency, multi_lat, latency_mt, latency_mp
//	bandwidth.go   bw, bibw, mbw_mr
//	collective.go  the 15 collectives
//	onesided.go    the 9 operations on windows
//	sync.go        synchronization of operations, and creation of windows
//	data.go        test data and its validation
//	table.go       output
//
// # Differences
//
// The threads of latency_mt are goroutines, and so are the processes of latency_mp:
// a forked process cannot be a second rank, and the problem that the original tests,
// registered pages that move to the child, cannot occur. The children of the original
// sleep, and so do the goroutines.
//
// With -c every rank validates received data, in pings and pongs, and its
// window; some one-sided tests of the original have no -c. The original has no mpi_long, the
// type of the atomic operations of adapters.
package osu
