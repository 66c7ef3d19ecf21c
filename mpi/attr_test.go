package mpi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

func TestAttributes(t *testing.T) {
	var freed []string
	name := mpi.NewAttr(func(_ *mpi.Comm, v string) (string, bool) { return v + "'", v != "only here" },
		func(_ *mpi.Comm, v string) { freed = append(freed, v) })
	count := mpi.NewAttr[int](nil, nil)
	w, err := mpi.Init(open, mpi.Options{})
	require.NoError(t, err)
	_, ok := name.Get(w.Comm)
	require.False(t, ok)
	name.Set(w.Comm, "first")
	name.Set(w.Comm, "second")
	count.Set(w.Comm, 7)
	require.Equal(t, []string{"first"}, freed)
	d, err := w.Dup()
	require.NoError(t, err)
	v, ok := name.Get(d)
	require.True(t, ok)
	require.Equal(t, "second'", v)
	_, ok = count.Get(d)
	require.False(t, ok, "it is not copied")
	n, ok := count.Get(w.Comm)
	require.True(t, ok)
	require.Equal(t, 7, n)
	s, err := w.Split(0, 0)
	require.NoError(t, err)
	_, ok = name.Get(s)
	require.False(t, ok, "nor is anything by Split")
	require.NoError(t, s.Free())
	require.NoError(t, d.Free())
	require.Equal(t, []string{"first", "second'"}, freed)
	name.Delete(w.Comm)
	name.Delete(w.Comm)
	require.Equal(t, []string{"first", "second'", "second"}, freed)
	name.Set(w.Comm, "only here")
	d, err = w.Dup()
	require.NoError(t, err)
	_, ok = name.Get(d)
	require.False(t, ok)
	other := mpi.NewAttr(nil, func(*mpi.Comm, string) { freed = append(freed, "the end") })
	name.Set(w.Self, "self")
	other.Set(w.Self, "")
	require.NoError(t, w.Finalize())
	require.Equal(t, []string{"the end", "self"}, freed[3:], "the last one first")
}

func TestErrorHandler(t *testing.T) {
	job(t, 2, mpi.Options{}, func(w mpi.World) error {
		var seen []*mpi.Error
		w.SetErrorHandler(func(e *mpi.Error) { seen = append(seen, e) })
		d, err := w.Dup()
		require.NoError(t, err)
		errs := []error{w.Send(mpi.Of([]byte{1}), 9, 0), d.Bcast(mpi.Of([]byte{1}), 9)}
		require.Len(t, seen, len(errs))
		for i, err := range errs {
			require.Same(t, seen[i], err)
		}
		w.SetErrorHandler(nil)
		require.ErrorIs(t, w.Send(mpi.Of([]byte{1}), 9, 0), mpi.ErrRank)
		require.Len(t, seen, 2)
		return d.Free()
	})
}

// TestCreateGroup creates communicators of groups, several at a time, without a call of the other
// ranks.
func TestCreateGroup(t *testing.T) {
	for _, o := range []mpi.Options{{}, checked} {
		job(t, 6, o, func(w mpi.World) error {
			row, err := w.Split(w.Rank()/3, -w.Rank()) // 2 1 0, and 5 4 3
			require.NoError(t, err)
			all, err := w.Group().Incl(4, 2, 0)
			require.NoError(t, err)
			some, err := row.Group().Excl(2) // 2 1, and 5 4: rank 3 is in no group
			require.NoError(t, err)
			ends := make(chan error, 2)
			for tag, g := range []*mpi.Group{all, some} {
				go func() { ends <- createGroups([]*mpi.Comm{w.Comm, row}[tag], g, tag) }()
			}
			for range 2 {
				require.NoError(t, <-ends)
			}
			if w.Rank() == 0 {
				g, err := w.Group().Incl(1)
				require.NoError(t, err)
				for err, want := range map[error]error{made(w.CreateGroup(g, 0)): mpi.ErrGroup, made(w.CreateGroup(w.Group(), -1)): mpi.ErrTag, made(row.CreateGroup(w.Group(), 0)): mpi.ErrGroup} {
					require.ErrorIs(t, err, want)
				}
			}
			return row.Free()
		})
	}
}

// createGroups creates communicators of a group if this rank is a member.
func createGroups(c *mpi.Comm, g *mpi.Group, tag int) error {
	for i := 0; i < 5 && g.Rank() != mpi.Undefined; i++ {
		d, err := c.CreateGroup(g, tag)
		if err != nil {
			return err
		}
		sum := []int{d.Rank()}
		if err := d.Allreduce(mpi.InPlace, mpi.Of(sum), mpi.Sum); err != nil {
			return err
		}
		if d.Rank() != g.Rank() || sum[0] != d.Size()*(d.Size()-1)/2 {
			return fmt.Errorf("rank %d of %d, sum %d", d.Rank(), d.Size(), sum[0])
		}
		if err := d.Free(); err != nil {
			return err
		}
	}
	return nil
}
