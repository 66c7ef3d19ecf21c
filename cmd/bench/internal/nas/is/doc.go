// Package is is IS of the NAS Parallel Benchmarks, "integer sort": ten times over,
// all ranks find out where each of their keys belongs in the order of all. Keys go
// into buckets, the buckets' sizes are added up, each rank gets some buckets that
// have about its share of keys in them, and counts what it has got. It lives on
// Alltoallv with large pieces.
//
//	report, err := is.Run(world.Comm, nas.S) // on 1, 2, 4, 8, 16, ... ranks
package is
