package data_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/acp/data"
)

// TestMap compares a map with Go's map, as any of the ranks, for values of fixed and variable size, and for
// many or few pairs in a bucket.
func TestMap(t *testing.T) {
	worlds(t, 1<<16, func(t *testing.T, w []*data.Space) {
		texts := rapid.StringMatching("[a-d]{0,2}")
		arrays := rapid.Custom(func(t *rapid.T) [3]int16 { return [3]int16{rapid.Int16Range(0, 9).Draw(t, "k")} })
		rapid.Check(t, func(t *rapid.T) {
			if rapid.Bool().Draw(t, "text") {
				tryMap(t, w, texts, rapid.StringN(0, 100, -1))
			} else {
				tryMap(t, w, arrays, rapid.Uint64())
			}
		})
	})
}

func tryMap[K comparable, V any](t *rapid.T, w []*data.Space, keys *rapid.Generator[K], values *rapid.Generator[V]) {
	who := rapid.IntRange(0, len(w)-1)
	model := map[K]V{}
	o := data.MapOptions{Buckets: rapid.IntRange(1, 4).Draw(t, "buckets"), Ranks: rapid.SliceOfDistinct(who, rapid.ID).Draw(t, "ranks")}
	made, err := data.NewMap[K, V](ctx, w[who.Draw(t, "by")], who.Draw(t, "at"), o)
	require.NoError(t, err)
	as := make([]*data.Map[K, V], len(w))
	for i := range w {
		as[i], err = data.OpenMap[K, V](ctx, w[i], made.GA())
		require.NoError(t, err)
	}
	m := func(t *rapid.T) *data.Map[K, V] { return as[who.Draw(t, "rank")] }
	find := func(t *rapid.T, k K) {
		v, found, err := m(t).Find(ctx, k)
		want, has := model[k]
		require.NoError(t, err)
		require.Equal(t, has, found)
		require.Equal(t, want, v)
	}
	t.Repeat(map[string]func(*rapid.T){
		"insert": func(t *rapid.T) {
			k, v := keys.Draw(t, "k"), values.Draw(t, "v")
			_, has := model[k]
			added, err := m(t).Insert(ctx, k, v)
			require.NoError(t, err)
			require.Equal(t, !has, added)
			if added {
				model[k] = v
			}
			find(t, k)
		},
		"set": func(t *rapid.T) {
			k, v := keys.Draw(t, "k"), values.Draw(t, "v")
			model[k] = v
			require.NoError(t, m(t).Set(ctx, k, v))
			find(t, k)
		},
		"update": func(t *rapid.T) {
			k, v := keys.Draw(t, "k"), values.Draw(t, "v")
			require.NoError(t, m(t).Update(ctx, k, func(was V, found bool) V {
				want, has := model[k]
				require.Equal(t, has, found)
				require.Equal(t, want, was)
				return v
			}))
			model[k] = v
		},
		"erase": func(t *rapid.T) {
			k := keys.Draw(t, "k")
			_, has := model[k]
			delete(model, k)
			found, err := m(t).Erase(ctx, k)
			require.NoError(t, err)
			require.Equal(t, has, found)
			find(t, k)
		},
		"find": func(t *rapid.T) { find(t, keys.Draw(t, "k")) },
		"len": func(t *rapid.T) {
			n, err := m(t).Len(ctx)
			require.NoError(t, err)
			require.Equal(t, len(model), n)
		},
	})
	have := map[K]V{}
	for p, err := range m(t).All(ctx) {
		require.NoError(t, err)
		require.NotContains(t, have, p.Key)
		have[p.Key] = p.Value
	}
	require.Equal(t, model, have)
	for _, one := range as {
		for p, err := range one.Local(ctx) {
			require.NoError(t, err)
			require.Contains(t, have, p.Key)
			delete(have, p.Key)
		}
	}
	require.Empty(t, have)
	if rapid.Bool().Draw(t, "clear") {
		require.NoError(t, m(t).Clear(ctx))
		n, err := m(t).Len(ctx)
		require.NoError(t, err)
		require.Zero(t, n)
	}
	require.NoError(t, m(t).Destroy(ctx))
	_, _, err = m(t).Find(ctx, keys.Draw(t, "k"))
	require.Error(t, err)
	empty(t, w)
}

// TestSet compares a set with the keys of Go's map.
func TestSet(t *testing.T) {
	worlds(t, 1<<16, func(t *testing.T, w []*data.Space) {
		a, err := data.NewSet[string](ctx, w[0], len(w)-1, data.MapOptions{Buckets: 2})
		require.NoError(t, err)
		b, err := data.OpenSet[string](ctx, w[len(w)-1], a.GA())
		require.NoError(t, err)
		for _, k := range []string{"x", "y", "x", "z"} {
			was, err := b.Has(ctx, k)
			require.NoError(t, err)
			added, err := a.Insert(ctx, k)
			require.NoError(t, err)
			require.Equal(t, was, !added)
		}
		found, err := b.Erase(ctx, "y")
		require.NoError(t, err)
		require.True(t, found)
		n, err := a.Len(ctx)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		have := map[string]bool{}
		for _, s := range []*data.Set[string]{a, b} {
			for k, err := range s.All(ctx) {
				require.NoError(t, err)
				have[k] = true
			}
		}
		require.Equal(t, []string{"x", "z"}, slices.Sorted(maps.Keys(have)))
		require.NoError(t, b.Clear(ctx))
		for k, err := range a.Local(ctx) {
			require.Fail(t, "it is empty", "%v, %v", k, err)
		}
		require.NoError(t, a.Destroy(ctx))
		empty(t, w)
	})
}
