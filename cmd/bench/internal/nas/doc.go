// Package nas has what the NAS Parallel Benchmarks have in common: the classes of
// problems, the generator of random numbers, and the report. The benchmarks are
// below it, each as NPB 3.4 specifies it, with the published values to verify its
// results by:
//
//	is    integer sort: buckets over Alltoallv, and reductions
//	cg    conjugate gradient: sums in rows of a grid of ranks, and a transposition
//	ep    embarrassingly parallel: random numbers, and three sums at the end
//
// All have the same form:
//
//	report, err := is.Run(world.Comm, nas.A) // by all ranks
//	if world.Rank() == 0 {
//		fmt.Print(report)
//	}
//
// From the command line: go run ./cmd/bench nas is --class A -n 4.
package nas
