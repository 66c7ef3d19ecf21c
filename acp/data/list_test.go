package data_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/data"
)

// TestList compares a list with a slice, as any of the ranks, with elements at any rank.
func TestList(t *testing.T) {
	worlds(t, 1<<16, func(t *testing.T, w []*data.Space) {
		rapid.Check(t, func(t *rapid.T) {
			if rapid.Bool().Draw(t, "text") {
				tryList(t, w, rapid.StringN(0, 100, -1))
			} else {
				tryList(t, w, rapid.Int32())
			}
		})
	})
}

func tryList[T any](t *rapid.T, w []*data.Space, values *rapid.Generator[T]) {
	who := rapid.IntRange(0, len(w)-1)
	var model []data.Element[T]
	made, err := data.NewList[T](ctx, w[who.Draw(t, "by")], who.Draw(t, "at"))
	require.NoError(t, err)
	as := openEach(t, w, func(s *data.Space) (*data.List[T], error) { return data.OpenList[T](ctx, s, made.GA()) })
	l := func(t *rapid.T) *data.List[T] { return as[who.Draw(t, "rank")] }
	add := func(t *rapid.T, i int, f func(l *data.List[T], v T) (acp.GA, error)) {
		v, on := values.Draw(t, "v"), who.Draw(t, "on")
		at, err := f(l(t).On(on), v)
		require.NoError(t, err)
		require.Equal(t, on, at.Rank())
		model = slices.Insert(model, i, data.Element[T]{At: at, Value: v})
	}
	taken := func(v T, err error, i int) {
		if len(model) == 0 {
			require.ErrorIs(t, err, data.ErrEmpty)
			return
		}
		require.NoError(t, err)
		require.Equal(t, model[i].Value, v)
		model = slices.Delete(model, i, i+1)
	}
	all := func(t *rapid.T) { requireSame(t, model, l(t).Elements(ctx)) }
	t.Repeat(map[string]func(*rapid.T){
		"push back": func(t *rapid.T) {
			add(t, len(model), func(l *data.List[T], v T) (acp.GA, error) { return l.PushBack(ctx, v) })
		},
		"push front": func(t *rapid.T) {
			add(t, 0, func(l *data.List[T], v T) (acp.GA, error) { return l.PushFront(ctx, v) })
		},
		"insert": func(t *rapid.T) {
			if len(model) > 0 {
				i := rapid.IntRange(0, len(model)-1).Draw(t, "i")
				add(t, i, func(l *data.List[T], v T) (acp.GA, error) { return l.Insert(ctx, model[i].At, v) })
			}
		},
		"pop back": func(t *rapid.T) {
			v, err := l(t).PopBack(ctx)
			taken(v, err, len(model)-1)
		},
		"pop front": func(t *rapid.T) {
			v, err := l(t).PopFront(ctx)
			taken(v, err, 0)
		},
		"erase": func(t *rapid.T) {
			if len(model) > 0 {
				i := rapid.IntRange(0, len(model)-1).Draw(t, "i")
				at := model[i].At
				v, err := l(t).Value(ctx, at)
				require.NoError(t, err)
				require.Equal(t, model[i].Value, v)
				v, err = l(t).Erase(ctx, at)
				taken(v, err, i)
				_, err = l(t).Erase(ctx, at)
				require.ErrorIs(t, err, data.ErrElement)
				_, err = l(t).Insert(ctx, at, v)
				require.ErrorIs(t, err, data.ErrElement)
			}
		},
		"all": all,
	})
	all(t)
	n, err := l(t).Len(ctx)
	require.NoError(t, err)
	require.Equal(t, len(model), n)
	if rapid.Bool().Draw(t, "clear") {
		require.NoError(t, l(t).Clear(ctx))
		_, err := l(t).PopBack(ctx)
		require.ErrorIs(t, err, data.ErrEmpty)
	}
	require.NoError(t, l(t).Destroy(ctx))
	_, err = l(t).Len(ctx)
	require.ErrorIs(t, err, data.ErrDestroyed)
	empty(t, w)
}
