// Package is is IS of the NAS Parallel Benchmarks, "integer sort". In each of ten
// iterations, all ranks determine the global rank of each of their keys. Keys are sorted
// into buckets, and the sizes of the buckets are summed. Each rank receives consecutive
// buckets with about its share of the keys, and counts them. The performance depends on
// Alltoallv with large blocks.
//
//	report, err := is.Run(world.Comm, nas.S) // on 1, 2, 4, 8, 16, ... ranks
package is
