package mpi_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// TestRootRules tests the roots of all rooted calls and InPlace for both buffers of all calls
// (MPI 4.1, 6.2 ff. and 8.6), in each form, at the root and at another rank. Invalid arguments
// are rejected without communication.
func TestRootRules(t *testing.T) {
	one, two := mpi.Of([]int64{1}), mpi.Of([]int64{1, 2})
	n := []int{1, 1}
	rooted := map[string]func(c collectiveCaller, root int) error{
		"Bcast":    func(c collectiveCaller, root int) error { return c.Bcast(one, root) },
		"Gather":   func(c collectiveCaller, root int) error { return c.Gather(one, two, root) },
		"Gatherv":  func(c collectiveCaller, root int) error { return c.Gatherv(one, two, n, nil, root) },
		"Scatter":  func(c collectiveCaller, root int) error { return c.Scatter(two, one, root) },
		"Scatterv": func(c collectiveCaller, root int) error { return c.Scatterv(two, n, nil, one, root) },
		"Reduce":   func(c collectiveCaller, root int) error { return c.Reduce(one, mpi.Of([]int64{1}), mpi.Sum, root) },
	}
	in := mpi.InPlace
	refused := map[string]func(c collectiveCaller, rank int) error{ // on every rank
		"Bcast":                func(c collectiveCaller, rank int) error { return c.Bcast(in, rank) },
		"Gather, received":     func(c collectiveCaller, rank int) error { return c.Gather(one, in, rank) },
		"Scatter, sent":        func(c collectiveCaller, rank int) error { return c.Scatter(in, one, rank) },
		"Reduce, received":     func(c collectiveCaller, rank int) error { return c.Reduce(one, in, mpi.Sum, rank) },
		"Gather, no root":      func(c collectiveCaller, rank int) error { return c.Gather(in, two, 1-rank) },
		"Gatherv, no root":     func(c collectiveCaller, rank int) error { return c.Gatherv(in, two, n, nil, 1-rank) },
		"Scatter, no root":     func(c collectiveCaller, rank int) error { return c.Scatter(two, in, 1-rank) },
		"Scatterv, no root":    func(c collectiveCaller, rank int) error { return c.Scatterv(two, n, nil, in, 1-rank) },
		"Reduce, no root":      func(c collectiveCaller, rank int) error { return c.Reduce(in, one, mpi.Sum, 1-rank) },
		"Allgather, received":  func(c collectiveCaller, rank int) error { return c.Allgather(one, in) },
		"Allgatherv, received": func(c collectiveCaller, rank int) error { return c.Allgatherv(one, in, n, nil) },
		"Alltoall, received":   func(c collectiveCaller, rank int) error { return c.Alltoall(two, in) },
		"Alltoallv, received":  func(c collectiveCaller, rank int) error { return c.Alltoallv(two, n, nil, in, n, nil) },
		"Alltoallw, received": func(c collectiveCaller, rank int) error {
			return c.Alltoallw([]mpi.Buffer{one, one}, []mpi.Buffer{in, in})
		},
		"Allreduce, received":          func(c collectiveCaller, rank int) error { return c.Allreduce(one, in, mpi.Sum) },
		"Allreduce, both":              func(c collectiveCaller, rank int) error { return c.Allreduce(in, in, mpi.Sum) },
		"ReduceScatter, received":      func(c collectiveCaller, rank int) error { return c.ReduceScatter(two, in, n, mpi.Sum) },
		"ReduceScatterBlock, received": func(c collectiveCaller, rank int) error { return c.ReduceScatterBlock(two, in, mpi.Sum) },
		"Scan, received":               func(c collectiveCaller, rank int) error { return c.Scan(one, in, mpi.Sum) },
		"Exscan, received":             func(c collectiveCaller, rank int) error { return c.Exscan(one, in, mpi.Sum) },
	}
	job(t, 2, mpi.Options{}, func(w mpi.World) error {
		for form, c := range map[string]collectiveCaller{"blocking": w.Comm, "background": formed{w.Comm, false}, "persistent": formed{w.Comm, true}} {
			for _, root := range []int{mpi.ProcNull, mpi.AnySource, mpi.Undefined, -7, 2, math.MaxInt, math.MinInt} {
				for name, call := range rooted {
					if err := expect(call(c, root), false, mpi.ErrRoot); err != nil {
						return fmt.Errorf("%s %s with root %d: %w", form, name, root, err)
					}
				}
			}
			for name, call := range refused {
				if err := expect(call(c, w.Rank()), false, mpi.ErrBuffer); err != nil {
					return fmt.Errorf("%s %s in place: %w", form, name, err)
				}
			}
		}
		return nil
	})
	w := aloneWorld(t)
	g, err := w.CartCreate([]int{1}, []bool{true}, false)
	require.NoError(t, err)
	for _, b := range [][2]mpi.Buffer{{in, two}, {one, in}, {in, in}} {
		require.ErrorIs(t, g.NeighborAllgather(b[0], b[1]), mpi.ErrBuffer)
		require.ErrorIs(t, g.NeighborAlltoall(b[0], b[1]), mpi.ErrBuffer)
		require.ErrorIs(t, errorOf(waitStatus(g.IneighborAllgather(b[0], b[1]))), mpi.ErrBuffer)
		require.ErrorIs(t, errorOf(startAndWait(g.NeighborAlltoallInit(b[0], b[1]))), mpi.ErrBuffer)
	}
	require.NoError(t, w.Finalize())
}
