// Package nas is the common part of the NAS Parallel Benchmarks: the classes of
// problems, the random number generator, and the report. The benchmarks are
// its subpackages. Each follows the specification of NPB 3.4 and verifies its results
// against the published values:
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
