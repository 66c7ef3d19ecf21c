package mpi_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// matrix has numbers modulo a prime as its elements, so that a product depends on the order of
// factors.
type matrix [4]int32

func (a matrix) multiply(b matrix) matrix {
	dot := func(r, c int) int32 {
		return int32((int64(a[2*r])*int64(b[c]) + int64(a[2*r+1])*int64(b[2+c])) % 10007)
	}
	return matrix{dot(0, 0), dot(0, 1), dot(1, 0), dot(1, 1)}
}

var product = mpi.OpStructs("product of matrices", false, func(in, inout []matrix) {
	for i := range inout {
		inout[i] = in[i].multiply(inout[i])
	}
})

// matrices returns n matrices of a rank.
func matrices(rank, n int) []matrix {
	list := make([]matrix, n)
	for i := range list {
		list[i] = matrix{int32(rank + 1), int32(i + 2), int32(3*rank + i), 5}
	}
	return list
}

// products returns the products of the matrices of ranks from until to.
func products(from, to, n int) []matrix {
	list := matrices(from, n)
	for r := from + 1; r < to; r++ {
		for i, m := range matrices(r, n) {
			list[i] = list[i].multiply(m)
		}
	}
	return list
}

// TestOrderOfOperands checks that operands are combined in rank order for every root.
func TestOrderOfOperands(t *testing.T) {
	const ranks = 5
	job(t, ranks, checked, func(w mpi.World) error {
		for _, n := range []int{1, 5, 1000} {
			mine := matrices(w.Rank(), n)
			got := make([]matrix, n)
			expect := func(what string, want []matrix) error {
				if !slices.Equal(got, want) {
					return fmt.Errorf("%s of %d matrices at rank %d: %.100v, not %.100v", what, n, w.Rank(), got, want)
				}
				return nil
			}
			send, recv := mpi.Structs(mine), mpi.Structs(got)
			require.NoError(t, w.Allreduce(send, recv, product))
			require.NoError(t, expect("allreduce", products(0, ranks, n)))
			require.NoError(t, w.Reduce(send, recv, product, 3))
			if err := expect("reduce", products(0, ranks, n)); w.Rank() == 3 && err != nil {
				return err
			}
			require.NoError(t, w.Scan(send, recv, product))
			require.NoError(t, expect("scan", products(0, w.Rank()+1, n)))
			require.NoError(t, w.Exscan(send, recv, product))
			if w.Rank() == 0 {
				continue
			}
			require.NoError(t, expect("exscan", products(0, w.Rank(), n)))
		}
		wrong := mpi.Structs(make([]struct {
			A int64
			B int32
		}, 1))
		require.ErrorIs(t, w.Allreduce(wrong, mpi.InPlace, product), mpi.ErrBuffer)
		require.ErrorIs(t, w.Allreduce(mpi.InPlace, wrong, product), mpi.ErrOp)
		return nil
	})
}

// TestAlgorithms runs all algorithms over a real network.
func TestAlgorithms(t *testing.T) {
	for i := range 5 {
		choices := map[string]string{}
		for _, c := range coll.Collectives() {
			list := coll.Algorithms(c)
			choices[c.String()] = list[i%len(list)].Name
		}
		n := 3 + i%2
		job(t, n, mpi.Options{Algorithms: choices}, func(w mpi.World) error { return everyCollective(w.Comm, w.Rank(), n, trials(n)) })
	}
}

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
