package data_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/acp/data"
)

// TestDeque compares a deque with a slice, as any of the ranks.
func TestDeque(t *testing.T) {
	worlds(t, 1<<16, func(t *testing.T, w []*data.Space) {
		rapid.Check(t, func(t *rapid.T) {
			who := rapid.IntRange(0, len(w)-1)
			var model []particle
			made, err := data.NewDeque[particle](ctx, w[who.Draw(t, "by")], who.Draw(t, "at"), rapid.IntRange(0, 10).Draw(t, "capacity"))
			require.NoError(t, err)
			as := openEach(t, w, func(s *data.Space) (*data.Deque[particle], error) { return data.OpenDeque[particle](ctx, s, made.GA()) })
			d := func(t *rapid.T) *data.Deque[particle] { return as[who.Draw(t, "rank")] }
			popped := func(x particle, err error, want int) {
				if len(model) == 0 {
					require.ErrorIs(t, err, data.ErrEmpty)
					return
				}
				require.NoError(t, err)
				require.Equal(t, model[want], x)
				model = slices.Delete(model, want, want+1)
			}
			all := func(t *rapid.T) { requireSame(t, model, d(t).All(ctx)) }
			t.Repeat(map[string]func(*rapid.T){
				"push back": func(t *rapid.T) {
					x := particles.Draw(t, "x")
					model = append(model, x...)
					require.NoError(t, d(t).PushBack(ctx, x...))
				},
				"push front": func(t *rapid.T) {
					x := particles.Draw(t, "x")
					model = slices.Insert(model, 0, x...)
					require.NoError(t, d(t).PushFront(ctx, x...))
				},
				"pop back": func(t *rapid.T) {
					x, err := d(t).PopBack(ctx)
					popped(x, err, len(model)-1)
				},
				"pop front": func(t *rapid.T) {
					x, err := d(t).PopFront(ctx)
					popped(x, err, 0)
				},
				"insert": func(t *rapid.T) {
					i, x := rapid.IntRange(0, len(model)).Draw(t, "i"), particles.Draw(t, "x")
					model = slices.Insert(model, i, x...)
					require.NoError(t, d(t).Insert(ctx, i, x...))
				},
				"erase": func(t *rapid.T) {
					i := rapid.IntRange(0, len(model)).Draw(t, "i")
					n := rapid.IntRange(0, len(model)-i).Draw(t, "n")
					model = slices.Delete(model, i, i+n)
					require.NoError(t, d(t).Erase(ctx, i, n))
				},
				"set": func(t *rapid.T) {
					if len(model) > 0 {
						i, x := rapid.IntRange(0, len(model)-1).Draw(t, "i"), particle{Kind: rapid.Uint16().Draw(t, "x")}
						model[i] = x
						require.NoError(t, d(t).Set(ctx, i, x))
						have, err := d(t).At(ctx, i)
						require.NoError(t, err)
						require.Equal(t, x, have)
					}
				},
				"reserve": func(t *rapid.T) {
					require.NoError(t, d(t).Reserve(ctx, rapid.IntRange(0, 50).Draw(t, "n")))
				},
				"all": all,
			})
			all(t)
			require.NoError(t, d(t).Clear(ctx))
			n, err := d(t).Len(ctx)
			require.NoError(t, err)
			require.Zero(t, n)
			require.NoError(t, d(t).Destroy(ctx))
			empty(t, w)
		})
	})
}
