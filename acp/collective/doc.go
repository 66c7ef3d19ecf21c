// Package collective is the part of ACP's middle layer for calls that all ranks make together: broadcast,
// reductions, gather, scatter and exchanges of all with all.
//
//	n, err := collective.Open(p, acp.ChannelOptions{}) // at all ranks
//	err = collective.Bcast(ctx, n, 0, values)
//	err = collective.Allreduce(ctx, n, values, func(a, b float64) float64 { return a + b })
//	err = n.Close(ctx) // at all ranks
//
// # Memory
//
// A rank has channels to and from the ranks at the distances 1, 2, 4 ... in the ring of all ranks, two for
// each doubling of the number of ranks, and all calls use those alone. They exist from Open to Close.
//
// # Algorithms
//
// With n ranks, Bcast, Reduce, Gather and Scatter are binomial trees of log2 n rounds, whose edges go up the
// ring: a tree towards a root is the mirror image of one from it. Allreduce is Reduce and Bcast, so that all
// ranks have the same result, in floating point too. Allgather and Alltoall are Bruck's algorithms.
//
// Process.Sync is the barrier.
package collective
