// Package ep is EP of the NAS Parallel Benchmarks, "embarrassingly parallel": pairs
// of random numbers become pairs of normally distributed ones by Marsaglia's polar
// method. The results are their sums and their number in each square ring
// around the origin. Ranks communicate at the end only, so the benchmark
// measures the processor.
//
//	report, err := ep.Run(world.Comm, nas.S) // on any number of ranks
package ep
