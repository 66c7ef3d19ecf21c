package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// TestReduceLocal combines buffers of one rank: contiguous ones, columns of matrices, pairs and
// structs, and rejects buffers that do not fit the operation or each other.
func TestReduceLocal(t *testing.T) {
	x, y := []int32{1, 2, 3, 4}, []int32{10, 20, 30, 40}
	require.NoError(t, mpi.ReduceLocal(mpi.Of(x), mpi.Of(y), mpi.Sum))
	require.Equal(t, []int32{11, 22, 33, 44}, y)
	require.NoError(t, mpi.ReduceLocal(mpi.Strided(x, 2, 1, 2), mpi.Strided(y[1:], 2, 1, 2), mpi.Sum))
	require.Equal(t, []int32{11, 23, 33, 47}, y)
	minus := mpi.OpFunc("minus", false, func(in, inout []int32) {
		for i := range in {
			inout[i] = in[i] - inout[i]
		}
	})
	require.NoError(t, mpi.ReduceLocal(mpi.Of(x), mpi.Of(y), minus))
	require.Equal(t, []int32{-10, -21, -30, -43}, y)
	a, b := []mpi.Pair[float64]{{Value: 2, Index: 1}}, []mpi.Pair[float64]{{Value: 2, Index: 0}}
	require.NoError(t, mpi.ReduceLocal(mpi.Pairs(a), mpi.Pairs(b), mpi.MaxLoc))
	require.Equal(t, []mpi.Pair[float64]{{Value: 2, Index: 0}}, b)
	require.NoError(t, mpi.ReduceLocal(mpi.Buffer{}, mpi.Buffer{}, mpi.BAnd))

	for _, c := range []struct {
		in, inout mpi.Buffer
		op        mpi.Op
		is        error
		want      string
	}{
		{mpi.Of(x), mpi.Of(y), mpi.Op{}, mpi.ErrOp, "mpi: reduce-local: invalid reduction operation: zero Op"},
		{mpi.Of(x), mpi.Of(y), mpi.MaxLoc, mpi.ErrOp, "maxloc of int32 is undefined"},
		{mpi.Of(x), mpi.Of(y[:3]), mpi.Sum, mpi.ErrCount, "invalid count: 4 and 3 elements"},
		{mpi.Of(x), mpi.Of(make([]float32, 4)), mpi.Sum, mpi.ErrType, "datatype mismatch: message of 4 int32, buffer of 4 float32"},
		{mpi.Strided(x, 5, 1, 1), mpi.Of(y), mpi.Sum, mpi.ErrBuffer, "invalid buffer: strided buffer"},
		{mpi.Of(x), mpi.Strided(y, 2, 2, 0), mpi.Sum, mpi.ErrBuffer, "overlap; send only"},
		{mpi.InPlace, mpi.Of(y), mpi.Sum, mpi.ErrBuffer, "InPlace not allowed"},
	} {
		err := mpi.ReduceLocal(c.in, c.inout, c.op)
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.want)
	}
	require.Equal(t, []int32{-10, -21, -30, -43}, y)
}
