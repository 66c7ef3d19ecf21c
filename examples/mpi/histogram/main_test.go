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

// TestHistogram: also with fewer bins than ranks. It looks like the distribution
// that it is of, and numbers get lost beyond three standard deviations only.
func TestHistogram(t *testing.T) {
	for _, c := range []struct{ ranks, bins int }{{1, 10}, {3, 10}, {4, 3}} {
		var out bytes.Buffer // rank 0's
		require.NoError(t, mpitest.Run(c.ranks, func(w *mpi.World) error { return run(w.Comm, 10_000, c.bins, 3, &out) }))
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

// TestCollect: every bin has the sum of what all ranks have counted.
func TestCollect(t *testing.T) {
	const ranks, bins = 5, 13
	require.NoError(t, mpitest.Run(ranks, func(w *mpi.World) error {
		counts := make([]int64, bins)
		for i := range counts {
			counts[i] = int64(i * (w.Rank() + 1))
		}
		ours, err := collect(w.Comm, counts)
		if err != nil {
			return err
		}
		first := cut(w.Comm, bins, w.Rank())
		require.Len(t, ours, cut(w.Comm, bins, w.Rank()+1)-first)
		for i, n := range ours {
			require.EqualValues(t, (first+i)*(1+2+3+4+5), n)
		}
		return nil
	}))
}
