// Package cg is CG of the NAS Parallel Benchmarks, "conjugate gradient": the
// smallest eigenvalue of a large sparse matrix is estimated by inverse iteration,
// whose systems are solved by 25 steps of the conjugate gradient method. It lives
// on many messages of middle size, and on the latency of sums.
//
//	report, err := cg.Run(world.Comm, nas.S) // on 1, 2, 4, 8, 16, ... ranks
//
// The ranks are a grid with as many columns as rows, or twice as many, and each has
// a block of the matrix. A vector is cut as the columns are, and each column of
// ranks has a copy of its piece:
//
//	matrix.go    the matrix, which everybody makes and keeps a block of
//	grid.go      who is where; the product of matrix and vector: sums along the row
//	             of ranks, then an exchange with the rank that is transposed
//	cg.go        the iteration, and Run
package cg
