package mpi_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// TestNullRequests checks that waiting for null requests returns at once, with the empty status
// (MPI 4.1, 3.7.3 and 3.7.5).
func TestNullRequests(t *testing.T) {
	empty := mpi.Status{Source: mpi.AnySource, Tag: mpi.AnyTag}
	for name, r := range map[string]*mpi.Request{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			s, err := r.Wait()
			require.NoError(t, err)
			require.Equal(t, empty, s)
			s, done, err := r.Test()
			require.NoError(t, err)
			require.True(t, done)
			require.Equal(t, empty, s)
			require.False(t, r.Cancel())
			require.ErrorIs(t, r.Start(), mpi.ErrRequest)
			require.ErrorIs(t, mpi.StartAll(r, r), mpi.ErrRequest)
			require.EqualError(t, r.Free(), "mpi: free: invalid request: null handle")

			list, err := mpi.WaitAll(r, r)
			require.NoError(t, err)
			require.Equal(t, []mpi.Status{empty, empty}, list)
			list, done, err = mpi.TestAll(r)
			require.NoError(t, err)
			require.True(t, done)
			require.Equal(t, []mpi.Status{empty}, list)
			i, s, err := mpi.WaitAny(r, r)
			require.NoError(t, err)
			require.Equal(t, mpi.Undefined, i)
			require.Equal(t, empty, s)
			i, s, done, err = mpi.TestAny(r)
			require.NoError(t, err)
			require.True(t, done)
			require.Equal(t, mpi.Undefined, i)
			require.Equal(t, empty, s)
			which, _, err := mpi.WaitSome(r)
			require.NoError(t, err)
			require.Empty(t, which)
		})
	}
}

// TestNullAmongRequests checks that null and failed requests do not affect others in WaitAny
// and the like.
func TestNullAmongRequests(t *testing.T) {
	w := aloneWorld(t)
	refused, err := (*mpi.Comm)(nil).Isend(mpi.Buffer{}, 0, 0)
	require.ErrorIs(t, err, mpi.ErrComm)
	_, err = refused.Wait()
	require.ErrorIs(t, err, mpi.ErrComm)
	i, _, err := mpi.WaitAny(nil, refused)
	require.ErrorIs(t, err, mpi.ErrComm)
	require.Equal(t, 1, i)

	in, err := w.Irecv(mpi.Buffer{}, 0, 7)
	require.NoError(t, err)
	require.NoError(t, w.Send(mpi.Buffer{}, 0, 7))
	i, s, err := mpi.WaitAny(nil, &mpi.Request{}, in)
	require.NoError(t, err)
	require.Equal(t, 2, i)
	require.Equal(t, 7, s.Tag)
	_, err = mpi.WaitAll(nil, in, refused)
	require.ErrorIs(t, err, mpi.ErrComm)
	var never context.Context // nil, which never completes
	_, err = in.WaitContext(never)
	require.NoError(t, err)
	text, err := w.Report(never)
	require.NoError(t, err)
	require.Contains(t, text, "What the ranks do")
	require.NoError(t, w.Finalize())
	require.ErrorIs(t, w.Barrier(), mpi.ErrFinalized, "a job of one rank ends as others do")
	require.ErrorIs(t, w.Send(mpi.Buffer{}, mpi.ProcNull, 0), mpi.ErrFinalized)
}

// TestNullHandles checks that queries of null handles report them as null, comparisons accept them,
// and operations on the null group return the null group.
func TestNullHandles(t *testing.T) {
	w := aloneWorld(t)
	var c *mpi.Comm
	require.Equal(t, []any{mpi.Undefined, 0, "null", "null communicator"}, []any{c.Rank(), c.Size(), c.Name(), c.String()})
	require.Nil(t, c.Group())
	require.Equal(t, mpi.Identical, c.Compare(nil))
	require.Equal(t, mpi.Identical, c.Compare(&mpi.Comm{}))
	require.Equal(t, mpi.Unequal, c.Compare(w.Comm))
	require.Equal(t, mpi.Unequal, w.Compare(nil))
	require.EqualError(t, c.Barrier(), "mpi: barrier: invalid communicator: null handle")

	require.EqualError(t, mpi.World{}.Barrier(), "mpi: barrier: invalid communicator: null handle")
	require.EqualError(t, mpi.Cart{}.Barrier(), "mpi: barrier: invalid communicator: null handle")
	bare := mpi.Cart{Comm: w.Comm}
	_, err := bare.Coords(0)
	require.ErrorIs(t, err, mpi.ErrComm)
	require.ErrorIs(t, bare.NeighborAllgather(mpi.Buffer{}, mpi.Buffer{}), mpi.ErrComm)
	require.Nil(t, bare.Dims())
	_, err = bare.Dup()
	require.ErrorIs(t, err, mpi.ErrComm)

	g, empty := w.Group(), &mpi.Group{}
	require.Nil(t, g.Union(nil))
	require.Nil(t, g.Intersection(nil))
	require.Nil(t, g.Difference(nil))
	require.Nil(t, (*mpi.Group)(nil).Union(g))
	require.Equal(t, mpi.Unequal, g.Compare(nil))
	require.Equal(t, mpi.Unequal, (*mpi.Group)(nil).Compare(empty))
	require.Equal(t, mpi.Identical, g.Compare(g.Union(empty)))
	_, err = g.Translate([]int{0}, nil)
	require.ErrorIs(t, err, mpi.ErrGroup)
	_, err = w.Create(nil)
	require.ErrorIs(t, err, mpi.ErrGroup)
	_, err = w.CreateGroup(nil, 0)
	require.ErrorIs(t, err, mpi.ErrGroup)
	none, err := w.Create(empty)
	require.NoError(t, err)
	require.Nil(t, none)

	win, mine, err := mpi.WinAllocate[int64](w.Comm, 2)
	require.NoError(t, err)
	require.Len(t, mine, 2)
	require.Equal(t, []int{16, 8}, []int{win.Size(0), win.Unit(0)})
	for _, rank := range []int{-1, 1, math.MaxInt, mpi.ProcNull} {
		require.Equal(t, mpi.Undefined, win.Size(rank))
		require.Equal(t, mpi.Undefined, win.Unit(rank))
	}
	require.ErrorIs(t, win.Post(nil), mpi.ErrGroup)
	require.ErrorIs(t, win.Start(nil), mpi.ErrGroup)
	require.NoError(t, win.Free())
	require.ErrorIs(t, win.Put(mpi.Buffer{}, mpi.ProcNull, mpi.At(0)), mpi.ErrWin)
	for _, n := range []int{-1, math.MaxInt, math.MinInt, math.MaxInt/4 + 1} {
		_, _, err = mpi.WinAllocate[int64](w.Comm, n)
		require.ErrorIs(t, err, mpi.ErrCount)
	}
	_, err = mpi.DimsCreate(math.MaxInt, 0, 0)
	require.ErrorIs(t, err, mpi.ErrGrid)
	dims, err := mpi.DimsCreate(1<<31-1, 0, 0)
	require.NoError(t, err)
	require.Equal(t, []int{1<<31 - 1, 1}, dims)
	require.ErrorIs(t, w.Allreduce(mpi.Of([]int{1}), mpi.Of([]int{1}), mpi.OpFunc[int]("nil", true, nil)), mpi.ErrOp)
	require.NoError(t, w.Finalize())
}
