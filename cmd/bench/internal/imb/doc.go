// Package imb implements the MPI-1 part of the Intel MPI Benchmarks with their names
// and their output format (version 2021), so that tools which parse the original
// output work.
//
//	list, err := imb.Find("PingPong", "Alltoall") // without names: all
//	o := imb.Defaults()
//	o.Out = os.Stdout
//	rows, err := imb.Run(world.Comm, list, o)     // by all ranks; rank 0 has the rows
//
// From the command line: go run ./cmd/bench imb PingPong -n 2.
//
// Each benchmark runs on 2, 4, 8 ... ranks and then on all, while the others wait
// at a barrier; some run on two only. Options.Repetitions and Volume limit the number
// of repetitions. It is reduced if the warm-up shows that they would take longer than
// Options.Time.
//
//	benchmark.go   the list of benchmarks
//	options.go     options
//	run.go         groups of ranks, sizes, repetitions
//	transfer.go    transfers between two ranks or between neighbours
//	collective.go  collectives
//	table.go       output
//
// # Differences
//
// Concurrent groups (-multi), maps of ranks (-map) and cache control (-off_cache)
// are not supported. Data is not validated: the tests of package osu
// do that.
package imb
