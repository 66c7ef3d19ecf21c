package main

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

func TestPi(t *testing.T) {
	var out bytes.Buffer // rank 0's
	require.NoError(t, mpitest.Run(3, func(w mpi.World) error { return run(w.Comm, 100_000, &out) }))
	require.Contains(t, out.String(), "pi is 3.14159265359")
	require.Contains(t, out.String(), "; 3 ranks took ")
}

func TestArea(t *testing.T) {
	require.InDelta(t, math.Pi, sumStrips(1000, 0, 1), 1e-6)
	require.InDelta(t, math.Pi, sumStrips(1000, 0, 3)+sumStrips(1000, 1, 3)+sumStrips(1000, 2, 3), 1e-6)
}
