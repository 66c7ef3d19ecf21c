// Package imb has the MPI-1 part of the Intel MPI Benchmarks by its names, in the
// form of its output (that of version 2021), so that what reads the one reads the
// other.
//
//	list, err := imb.Find("PingPong", "Alltoall") // none is all
//	o := imb.Defaults()
//	o.Out = os.Stdout
//	rows, err := imb.Run(world.Comm, list, o)     // by all ranks; rank 0 has the rows
//
// From the command line: go run ./cmd/bench imb PingPong -n 2.
//
// Each benchmark runs on 2, 4, 8 ... ranks and then on all, while the others wait
// at a barrier; some on two only. Repetitions are as many as Options.Repetitions
// and Volume allow, fewer where the warm-up shows that they would take longer than
// Options.Time.
//
//	benchmark.go   the list
//	options.go     what can be chosen
//	run.go         groups of ranks, sizes, repetitions
//	transfer.go    what goes between two ranks, or between neighbours
//	collective.go  what all do together
//	table.go       the output
//
// # Differences
//
// There are no groups at the same time (-multi), no map of ranks (-map), and nothing
// is done about caches (-off_cache). Data is not looked at: the tests of package osu
// do that.
package imb
