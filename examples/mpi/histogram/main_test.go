package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// TestHistogram also has fewer bins than ranks. It compares the bins with the distribution; only
// numbers beyond three standard deviations may be missing.
func TestHistogram(t *testing.T) {
	for _, c := range []struct{ ranks, bins int }{{1, 10}, {3, 10}, {4, 3}} {
		var out bytes.Buffer // rank 0's
		require.NoError(t, mpitest.Run(c.ranks, func(w mpi.World) error { return run(w.Comm, 10_000, c.bins, 3, &out) }))
		lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
		require.Len(t, lines, c.bins)
		sum, left := 0, 0
		for i, line := range lines {
			var from float64
			var n int
			_, err := fmt.Sscanf(line, "%f %d", &from, &n)
			require.NoError(t, err)
			sum += n
			if i < c.bins/2 {
				left += n
			}
		}
		require.InEpsilon(t, 0.9973*float64(c.ranks)*10_000, sum, 0.002)
		if c.bins%2 == 0 {
			require.InEpsilon(t, sum/2, left, 0.02)
		}
	}
}

// TestCollect checks that rank 0 gets the sums of the counts of all ranks.
func TestCollect(t *testing.T) {
	const ranks, bins = 5, 13
	require.NoError(t, mpitest.Run(ranks, func(w mpi.World) error {
		counts := make([]int64, bins)
		for i := range counts {
			counts[i] = int64(i * (w.Rank() + 1))
		}
		all, err := sumCounts(w.Comm, counts)
		if err != nil {
			return err
		}
		if w.Rank() != 0 {
			require.Empty(t, all)
			return nil
		}
		require.Len(t, all, bins)
		for i, n := range all {
			require.EqualValues(t, i*(1+2+3+4+5), n)
		}
		return nil
	}))
}

// TestParts checks that every bin belongs to one rank.
func TestParts(t *testing.T) {
	for bins := range 20 {
		counts := make([]int64, bins)
		for ranks := 1; ranks < 9; ranks++ {
			n := 0
			for rank := range ranks {
				n += len(ownBins(counts, rank, ranks))
			}
			require.Equal(t, bins, n)
		}
	}
}
