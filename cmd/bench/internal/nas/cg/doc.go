// Package cg is CG of the NAS Parallel Benchmarks, "conjugate gradient": the
// smallest eigenvalue of a large sparse matrix is estimated by inverse iteration,
// whose systems are solved by 25 steps of the conjugate gradient method. Its performance
// depends on many medium-sized messages and on the latency of sums.
//
//	report, err := cg.Run(world.Comm, nas.S) // on 1, 2, 4, 8, 16, ... ranks
//
// The ranks are a grid with as many columns as rows, or twice as many, and each has
// a block of the matrix. A vector is distributed like the columns, and each column of
// ranks has a copy of its part:
//
//	matrix.go    generation of a block of the matrix
//	grid.go      layout of ranks; the product of matrix and vector: sums along the row
//	             of ranks, then an exchange with the rank that is transposed
//	cg.go        the iteration, and Run
package cg
