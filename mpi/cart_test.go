package mpi_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi"
)

func TestDimsCreate(t *testing.T) {
	// These are the examples of the standard (MPI 4.1, 8.5.2), and others.
	for _, c := range []struct {
		ranks      int
		dims, want []int
	}{
		{6, []int{0, 0}, []int{3, 2}},
		{7, []int{0, 0}, []int{7, 1}},
		{6, []int{0, 3, 0}, []int{2, 3, 1}},
		{7, []int{0, 3, 0}, nil},
		{16, []int{0, 0}, []int{4, 4}},
		{16, []int{0, 0, 0}, []int{4, 2, 2}},
		{12, []int{0, 0}, []int{4, 3}},
		{36, []int{0, 0, 0}, []int{4, 3, 3}},
		{1, []int{0, 0}, []int{1, 1}},
		{4, []int{4}, []int{4}},
		{4, []int{2}, nil},
		{4, []int{-1, 0}, nil},
		{0, []int{0}, nil},
	} {
		got, err := mpi.DimsCreate(c.ranks, c.dims...)
		require.Equal(t, c.want, got, "%d ranks, %v", c.ranks, c.dims)
		if c.want == nil {
			require.ErrorIs(t, err, mpi.ErrGrid)
		}
	}
}

// TestDimsCreateBalanced checks that no other product of so many factors has a smaller greatest factor.
func TestDimsCreateBalanced(t *testing.T) {
	var least func(n, k int) int
	least = func(n, k int) int {
		if k == 1 {
			return n
		}
		best := n
		for d := 1; d <= n; d++ {
			if n%d == 0 {
				best = min(best, max(d, least(n/d, k-1)))
			}
		}
		return best
	}
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(1, 300).Draw(t, "ranks"), rapid.IntRange(1, 3).Draw(t, "dimensions")
		dims, err := mpi.DimsCreate(n, make([]int, k)...)
		require.NoError(t, err)
		product := 1
		for _, d := range dims {
			product *= d
		}
		require.Equal(t, n, product)
		require.True(t, slices.IsSortedFunc(dims, func(a, b int) int { return b - a }), dims)
		require.Equal(t, least(n, k), dims[0])
	})
}

func TestCart(t *testing.T) {
	job(t, 8, checked, func(w mpi.World) error {
		// A grid of 2 x 3 leaves two of the eight ranks over.
		g, err := w.CartCreate([]int{2, 3}, []bool{false, true}, true)
		require.NoError(t, err)
		if w.Rank() >= 6 {
			require.Nil(t, g.Comm)
			return nil
		}
		require.Equal(t, []int{2, 3}, g.Dims())
		require.Equal(t, []bool{false, true}, g.Periods())
		for r := range 6 {
			at, err := g.Coords(r)
			require.NoError(t, err)
			require.Equal(t, []int{r / 3, r % 3}, at)
			back, err := g.RankOf(at[0], at[1]-6)
			require.NoError(t, err)
			require.Equal(t, r, back)
		}
		_, err = g.Coords(6)
		require.ErrorIs(t, err, mpi.ErrRank)
		_, err = g.RankOf(2, 0)
		require.ErrorIs(t, err, mpi.ErrGrid)
		_, err = g.RankOf(1)
		require.ErrorIs(t, err, mpi.ErrGrid)

		x, y := g.Rank()/3, g.Rank()%3
		source, dest, err := g.Shift(0, 1)
		require.NoError(t, err)
		require.Equal(t, []int{mpi.ProcNull, y}[x], source)
		require.Equal(t, []int{3 + y, mpi.ProcNull}[x], dest)
		source, dest, err = g.Shift(1, -2)
		require.NoError(t, err)
		require.Equal(t, 3*x+(y+2)%3, source)
		require.Equal(t, 3*x+(y+1)%3, dest)
		_, _, err = g.Shift(2, 1)
		require.ErrorIs(t, err, mpi.ErrGrid)

		row, err := g.Sub([]bool{false, true})
		require.NoError(t, err)
		require.Equal(t, []int{3}, row.Dims())
		require.Equal(t, []bool{true}, row.Periods())
		require.Equal(t, y, row.Rank())
		all := make([]int64, 3)
		require.NoError(t, row.Allgather(mpi.Of([]int64{int64(g.Rank())}), mpi.Of(all)))
		require.Equal(t, []int64{int64(3 * x), int64(3*x + 1), int64(3*x + 2)}, all)
		point, err := g.Sub([]bool{false, false})
		require.NoError(t, err)
		require.Equal(t, 1, point.Size())
		same, err := g.Dup()
		require.NoError(t, err)
		require.Equal(t, mpi.Congruent, g.Compare(same.Comm))
		neighbors(t, same)
		return nil
	})
}

// TestNeighbors has grids with one or two points in a dimension, where a rank is its own neighbor,
// or another one's on both sides.
func TestNeighbors(t *testing.T) {
	job(t, 4, checked, func(w mpi.World) error {
		for _, dims := range [][]int{{4}, {2, 2}, {1, 4}, {2, 1, 2}, {1}, {}} {
			for _, periodic := range []bool{false, true} {
				periods := make([]bool, len(dims))
				for i := range periods {
					periods[i] = periodic
				}
				g, err := w.CartCreate(dims, periods, false)
				require.NoError(t, err)
				if g.Comm != nil {
					neighbors(t, g)
				}
			}
		}
		return nil
	})
}

// neighbors has every rank send its number, a dimension and a direction.
func neighbors(t *testing.T, g mpi.Cart) {
	dims := len(g.Dims())
	var out, want, wantAll []int64
	for d := range dims {
		before, behind, err := g.Shift(d, 1)
		require.NoError(t, err)
		for side, r := range []int{before, behind} {
			out = append(out, int64(100*g.Rank()+10*d+side))
			if r == mpi.ProcNull {
				want, wantAll = append(want, -1), append(wantAll, -1)
				continue
			}
			want = append(want, int64(100*r+10*d+1-side)) // which it sent in the other direction
			wantAll = append(wantAll, int64(r))
		}
	}
	for _, strided := range []bool{false, true} {
		recv := newMemory(blankElements(2*dims), strided)
		require.NoError(t, g.NeighborAlltoall(newMemory(out, strided).buffer(), recv.buffer()))
		require.NoError(t, recv.compare("neighbor-alltoall", want))
		recv = newMemory(blankElements(2*dims), strided)
		require.NoError(t, g.NeighborAllgather(newMemory([]int64{int64(g.Rank())}, strided).buffer(), recv.buffer()))
		require.NoError(t, recv.compare("neighbor-allgather", wantAll))
	}
	a, b := newMemory(blankElements(2*dims), false), newMemory(blankElements(2*dims), false)
	r, err := g.IneighborAlltoall(mpi.Of(out), a.buffer())
	require.NoError(t, err)
	s, err := g.NeighborAllgatherInit(mpi.Of([]int64{int64(g.Rank())}), b.buffer())
	require.NoError(t, err)
	require.NoError(t, s.Start())
	_, err = mpi.WaitAll(s, r)
	require.NoError(t, err)
	require.NoError(t, a.compare("ineighbor-alltoall", want))
	require.NoError(t, b.compare("persistent neighbor-allgather", wantAll))
}
