package mpi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

func TestSplit(t *testing.T) {
	for _, n := range []int{1, 2, 5, 8} {
		job(t, n, checked, func(w mpi.World) error {
			c, err := w.Split(w.Rank()%2, -w.Rank())
			if err != nil {
				return err
			}
			// Split into the even and the odd ranks, in descending order.
			size := (n + 1 - w.Rank()%2) / 2
			require.Equal(t, size, c.Size())
			require.Equal(t, size-1-w.Rank()/2, c.Rank())
			require.Equal(t, fmt.Sprintf("world.split(%d)", w.Rank()%2), c.Name())
			all := make([]int64, size)
			if err := c.Allgather(mpi.Of([]int64{int64(w.Rank())}), mpi.Of(all)); err != nil {
				return err
			}
			for i, r := range all {
				require.EqualValues(t, 2*(size-1-i)+w.Rank()%2, r)
			}
			if err := everyCollective(c, c.Rank(), size, []trial{{n: 3, root: size - 1}}); err != nil {
				return err
			}

			d, err := c.Dup()
			if err != nil {
				return err
			}
			next, before := (d.Rank()+1)%size, (d.Rank()+size-1)%size
			got := []int64{0}
			s, err := d.Sendrecv(mpi.Of([]int64{int64(d.Rank())}), next, 1, mpi.Of(got), mpi.AnySource, 1)
			require.NoError(t, err)
			require.Equal(t, before, s.Source)
			require.EqualValues(t, before, got[0])
			require.NoError(t, d.Free())
			require.ErrorIs(t, d.Barrier(), mpi.ErrFreed)

			shared, err := w.SplitShared()
			if err != nil {
				return err
			}
			require.Equal(t, w.Size(), shared.Size(), "all are on one host")
			none, err := w.Split(mpi.Undefined, 0)
			require.Nil(t, none)
			return err
		})
	}
}
