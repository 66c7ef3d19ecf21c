package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// TestHeat runs grids of 1x1, 2x1, 3x2 and, with parts of different sizes, 7x1 ranks.
func TestHeat(t *testing.T) {
	for _, n := range []int{1, 2, 6, 7} {
		var out bytes.Buffer // rank 0's
		require.NoError(t, mpitest.Run(n, func(w mpi.World) error { return run(w, 31, 60, &out) }))
		require.Contains(t, out.String(), " degrees on average after 60 steps")
	}
}

func TestTooFewPoints(t *testing.T) {
	require.NoError(t, mpitest.Run(6, func(w mpi.World) error {
		require.EqualError(t, run(w, 2, 1, io.Discard), "2 points along an edge are too few for 3 ranks")
		return nil
	}))
}

// TestSteps checks the result of a few steps on 3x3 points, computed by hand.
func TestSteps(t *testing.T) {
	require.NoError(t, mpitest.Run(1, func(w mpi.World) error {
		for steps, want := range [][]float64{
			{0, 0, 0, 0, 0, 0, 0, 0, 0},
			{20, 20, 20, 0, 0, 0, 0, 0, 0},
			{28, 32, 28, 4, 4, 4, 0, 0, 0},
		} {
			got, err := solve(w.Comm, 3, steps)
			if err != nil {
				return err
			}
			require.InDeltaSlice(t, want, got, 1e-12)
		}
		return nil
	}))
}
