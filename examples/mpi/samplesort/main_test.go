package main

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer // rank 0's
	require.NoError(t, mpitest.Run(4, func(w mpi.World) error { return run(w.Comm, 10_000, 7, &out) }))
	var n, least, most int
	var took string
	_, err := fmt.Sscanf(out.String(), "%d numbers in order after %s ranks have %d to %d of them", &n, &took, &least, &most)
	require.NoError(t, err, out.String())
	require.Equal(t, 40_000, n)
	require.Greater(t, least, 9_000)
	require.Less(t, most, 11_000)
}

// TestSorts checks for any numbers that those of the ranks in rank order are all numbers, sorted.
// The ranks run for all rounds.
func TestSorts(t *testing.T) {
	const ranks, rounds = 3, 50
	number := rapid.OneOf(rapid.Float64Range(-3, 3), rapid.SampledFrom([]float64{0, 1})) // many are equal
	given := make([][ranks][]float64, rounds)
	got := make([][ranks][]float64, rounds)
	for i := range given {
		for rank := range ranks {
			given[i][rank] = rapid.SliceOfN(number, 0, 40).Example(1000*i + rank)
		}
	}
	require.NoError(t, mpitest.Run(ranks, func(w mpi.World) (err error) {
		for i := range given {
			if got[i][w.Rank()], err = samplesort(w.Comm, slices.Clone(given[i][w.Rank()])); err != nil {
				return err
			}
		}
		return nil
	}))
	for i := range given {
		want := slices.Concat(given[i][:]...)
		slices.Sort(want)
		require.Equal(t, want, slices.Concat(got[i][:]...), "%v", given[i])
	}
}
