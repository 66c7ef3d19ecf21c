package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

func TestRing(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		var out bytes.Buffer // rank 0's
		require.NoError(t, mpitest.Run(n, func(w mpi.World) error { return ring(w.Comm, &out) }))
		require.Equal(t, fmt.Sprintf("The sum of %d ranks is %d.\n", n, n*(n-1)/2), out.String())
	}
}
