package mpi_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi"
)

// runInWorldOf8 runs f at rank 2 of a job of eight.
func runInWorldOf8(t *testing.T, f func(w mpi.World)) {
	job(t, 8, checked, func(w mpi.World) error {
		if w.Rank() == 2 {
			f(w)
		}
		return nil
	})
}

// ranks returns the members of a group as ranks of the world.
func ranks(t require.TestingT, world, g *mpi.Group) []int {
	all := make([]int, g.Size())
	for i := range all {
		all[i] = i
	}
	list, err := g.Translate(all, world)
	require.NoError(t, err)
	return list
}

func TestGroups(t *testing.T) {
	runInWorldOf8(t, func(w mpi.World) {
		world := w.Group()
		require.Equal(t, 8, world.Size())
		require.Equal(t, 2, world.Rank())
		g, err := world.RangeIncl(mpi.Range{First: 6, Last: 1, Stride: -2}, mpi.Range{First: 7, Last: 7, Stride: 3}, mpi.Range{First: 3, Last: 1, Stride: 1})
		require.NoError(t, err)
		require.Equal(t, []int{6, 4, 2, 7}, ranks(t, world, g))
		require.Equal(t, 2, g.Rank())
		g, err = world.RangeExcl(mpi.Range{First: 0, Last: 7, Stride: 3})
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 4, 5, 7}, ranks(t, world, g))
		h, err := g.Excl(1, 4)
		require.NoError(t, err)
		require.Equal(t, []int{1, 4, 5}, ranks(t, world, h))
		require.Equal(t, mpi.Undefined, h.Rank())
		list, err := world.Translate([]int{5, mpi.ProcNull, 0}, h)
		require.NoError(t, err)
		require.Equal(t, []int{2, mpi.ProcNull, mpi.Undefined}, list)

		for _, bad := range [][]int{{8}, {-1}, {1, 1}} {
			_, err := world.Incl(bad...)
			require.ErrorIs(t, err, mpi.ErrRank)
			_, err = world.Excl(bad...)
			require.ErrorIs(t, err, mpi.ErrRank)
		}
		for _, bad := range []mpi.Range{{First: 0, Last: 3}, {First: 0, Last: 8, Stride: 1}, {First: -1, Last: 3, Stride: 1}} {
			_, err := world.RangeIncl(bad)
			require.ErrorIs(t, err, mpi.ErrRank)
		}
		_, err = world.Translate([]int{8}, h)
		require.ErrorIs(t, err, mpi.ErrRank)

		var none mpi.Group
		require.Zero(t, none.Size())
		require.Equal(t, mpi.Undefined, none.Rank())
		require.Equal(t, mpi.Identical, none.Union(world).Compare(world))
		require.Equal(t, 2, none.Union(world).Rank())
	})
}

// TestGroupSets compares set operations on groups with operations on slices.
func TestGroupSets(t *testing.T) {
	runInWorldOf8(t, func(w mpi.World) {
		world := w.Group()
		rapid.Check(t, func(t *rapid.T) {
			draw := func(name string) ([]int, *mpi.Group) {
				list := rapid.SliceOfNDistinct(rapid.IntRange(0, 7), 0, 8, rapid.ID).Draw(t, name)
				g, err := world.Incl(list...)
				require.NoError(t, err)
				return list, g
			}
			a, ga := draw("a")
			b, gb := draw("b")
			both, onlyA, union := []int{}, []int{}, slices.Clone(a)
			for _, r := range a {
				if slices.Contains(b, r) {
					both = append(both, r)
				} else {
					onlyA = append(onlyA, r)
				}
			}
			for _, r := range b {
				if !slices.Contains(a, r) {
					union = append(union, r)
				}
			}
			require.Equal(t, both, ranks(t, world, ga.Intersection(gb)))
			require.Equal(t, onlyA, ranks(t, world, ga.Difference(gb)))
			require.Equal(t, append([]int{}, union...), ranks(t, world, ga.Union(gb)))
			slices.Sort(union)
			want := mpi.Unequal
			if slices.Equal(a, b) {
				want = mpi.Identical
			} else if len(a) == len(b) && len(both) == len(a) {
				want = mpi.Similar
			}
			require.Equal(t, want, ga.Compare(gb))
		})
	})
}

func TestCreate(t *testing.T) {
	job(t, 5, checked, func(w mpi.World) error {
		g, err := w.Group().Incl(3, 0, 4)
		require.NoError(t, err)
		c, err := w.Create(g)
		require.NoError(t, err)
		require.Equal(t, slices.Contains([]int{0, 3, 4}, w.Rank()), c != nil)
		if c != nil {
			require.Equal(t, g.Rank(), c.Rank())
			require.Equal(t, mpi.Identical, g.Compare(c.Group()))
			require.Equal(t, mpi.Unequal, w.Compare(c))
			d, err := c.Split(0, c.Rank())
			require.NoError(t, err)
			require.Equal(t, mpi.Congruent, d.Compare(c))
			require.Equal(t, mpi.Identical, d.Compare(d))
			e, err := c.Split(0, -c.Rank())
			require.NoError(t, err)
			require.Equal(t, mpi.Similar, e.Compare(c))
			require.Equal(t, "similar", mpi.Similar.String())
			_, err = e.Create(w.Group())
			require.ErrorIs(t, err, mpi.ErrGroup)
			require.NoError(t, everyCollective(e, e.Rank(), 3, []trial{{n: 5, root: 1}}))
		}
		// Create two groups at a time.
		half, err := w.Group().Incl([][]int{{0, 1}, {0, 1}, {4, 3, 2}, {4, 3, 2}, {4, 3, 2}}[w.Rank()]...)
		require.NoError(t, err)
		h, err := w.Create(half)
		require.NoError(t, err)
		return h.Barrier()
	})
}

// TestCreateMismatches checks that all ranks get an error if members give different groups.
func TestCreateMismatches(t *testing.T) {
	for name, groups := range map[string][][]int{
		"order":     {{0, 1}, {1, 0}, {0, 1}},
		"one less":  {{0, 1}, {1}, {}},
		"outsider":  {{0}, {1}, {0, 1}},
		"all empty": {{}, {}, {}},
		"disjoint":  {{0, 2}, {1}, {0, 2}},
		"the same":  {{2, 0}, {2, 0}, {2, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			job(t, 3, mpi.Options{}, func(w mpi.World) error {
				g, err := w.Group().Incl(groups[w.Rank()]...)
				require.NoError(t, err)
				_, err = w.Create(g)
				switch name {
				case "order", "one less", "outsider":
					assert.ErrorIs(t, err, mpi.ErrMismatch)
				default:
					assert.NoError(t, err)
				}
				return w.Barrier()
			})
		})
	}
}

func TestSplit(t *testing.T) {
	for _, n := range []int{1, 2, 5, 8} {
		job(t, n, checked, func(w mpi.World) error {
			c, err := w.Split(w.Rank()%2, -w.Rank())
			require.NoError(t, err)
			// Split into the even and the odd ranks, in descending order.
			size := (n + 1 - w.Rank()%2) / 2
			require.Equal(t, size, c.Size())
			require.Equal(t, size-1-w.Rank()/2, c.Rank())
			require.Equal(t, fmt.Sprintf("world.split(%d)", w.Rank()%2), c.Name())
			all := make([]int64, size)
			require.NoError(t, c.Allgather(mpi.Of([]int64{int64(w.Rank())}), mpi.Of(all)))
			for i, r := range all {
				require.EqualValues(t, 2*(size-1-i)+w.Rank()%2, r)
			}
			require.NoError(t, everyCollective(c, c.Rank(), size, []trial{{n: 3, root: size - 1}}))

			d, err := c.Dup()
			require.NoError(t, err)
			next, before := (d.Rank()+1)%size, (d.Rank()+size-1)%size
			got := []int64{0}
			s, err := d.Sendrecv(mpi.Of([]int64{int64(d.Rank())}), next, 1, mpi.Of(got), mpi.AnySource, 1)
			require.NoError(t, err)
			require.Equal(t, before, s.Source)
			require.EqualValues(t, before, got[0])
			require.NoError(t, d.Free())
			require.ErrorIs(t, d.Barrier(), mpi.ErrFreed)

			shared, err := w.SplitShared()
			require.NoError(t, err)
			require.Equal(t, w.Size(), shared.Size(), "all are on one host")
			none, err := w.Split(mpi.Undefined, 0)
			require.Nil(t, none)
			return err
		})
	}
}
