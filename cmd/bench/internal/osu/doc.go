// Package osu has the OSU Micro-Benchmarks for MPI by their names, with their
// options and in the form of their output (that of version 7.4), so that what reads
// the one reads the other: point to point, blocking collectives, and one-sided.
//
//	t, err := osu.Find("latency")           // osu_latency
//	o := osu.Defaults(t)
//	o.Max, o.Out = 8192, os.Stdout
//	rows, err := osu.Run(world.Comm, t, o)  // by all ranks; rank 0 has the rows
//
// From the command line: go run ./cmd/bench osu latency -m 8192 -n 2.
//
//	test.go        the list
//	options.go     what can be chosen
//	run.go         the loop over sizes
//	latency.go     latency, multi_lat, latency_mt, latency_mp
//	bandwidth.go   bw, bibw, mbw_mr
//	collective.go  the 15 collectives
//	onesided.go    the 9 operations on windows
//	creation.go    how windows are made
//	sync.go        between which calls operations are
//	data.go        what is sent, and whether it has come
//	table.go       the output
//
// # Differences
//
// The threads of latency_mt are goroutines, and so are the processes of latency_mp:
// a process that forks cannot be a rank twice, and what the original looks for,
// pages of registered memory that the child gets, cannot happen. Its children sleep
// and so do these.
//
// With -c every rank looks at what it has got, in pings and in pongs, and at its
// window; of the originals some one-sided tests have no -c. They have no mpi_long, which
// is what adapters have atomic operations of.
package osu
