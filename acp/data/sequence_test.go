package data_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/data"
)

type particle struct {
	Kind uint16
	At   [3]float32
}

// particles generates elements for vectors and deques.
var particles = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) particle {
	return particle{rapid.Uint16().Draw(t, "kind"), [3]float32{float32(rapid.IntRange(-9, 9).Draw(t, "x")), 1, 2}}
}), 0, 12)

// sequence is the methods that vectors and deques have in common.
type sequence interface {
	PushBack(ctx context.Context, x ...particle) error
	PopBack(ctx context.Context) (particle, error)
	Insert(ctx context.Context, i int, x ...particle) error
	Erase(ctx context.Context, i, n int) error
	Set(ctx context.Context, i int, x ...particle) error
	At(ctx context.Context, i int) (particle, error)
	Reserve(ctx context.Context, n int) error
	Cap(ctx context.Context) (int, error)
	Clear(ctx context.Context) error
	Len(ctx context.Context) (int, error)
	All(ctx context.Context) iter.Seq2[particle, error]
	Destroy(ctx context.Context) error
}

// popModel compares a popped element with element i of the model, and removes that.
func popModel(t *rapid.T, model *[]particle, i int, x particle, err error) {
	if len(*model) == 0 {
		require.ErrorIs(t, err, data.ErrEmpty)
		return
	}
	require.NoError(t, err)
	require.Equal(t, (*model)[i], x)
	*model = slices.Delete(*model, i, i+1)
}

// trySequence compares a sequence, by the handle of any rank, with a slice, and destroys it.
func trySequence(t *rapid.T, q func(t *rapid.T) sequence, model *[]particle, more map[string]func(*rapid.T)) {
	all := func(t *rapid.T) { requireSame(t, *model, q(t).All(ctx)) }
	actions := map[string]func(*rapid.T){
		"push back": func(t *rapid.T) {
			x := particles.Draw(t, "x")
			*model = append(*model, x...)
			require.NoError(t, q(t).PushBack(ctx, x...))
		},
		"pop back": func(t *rapid.T) {
			x, err := q(t).PopBack(ctx)
			popModel(t, model, len(*model)-1, x, err)
		},
		"insert": func(t *rapid.T) {
			i, x := rapid.IntRange(0, len(*model)).Draw(t, "i"), particles.Draw(t, "x")
			*model = slices.Insert(*model, i, x...)
			require.NoError(t, q(t).Insert(ctx, i, x...))
		},
		"erase": func(t *rapid.T) {
			i := rapid.IntRange(0, len(*model)).Draw(t, "i")
			n := rapid.IntRange(0, len(*model)-i).Draw(t, "n")
			*model = slices.Delete(*model, i, i+n)
			require.NoError(t, q(t).Erase(ctx, i, n))
		},
		"set": func(t *rapid.T) {
			i, x := rapid.IntRange(0, len(*model)).Draw(t, "i"), particles.Draw(t, "x")
			x = x[:min(len(x), len(*model)-i)]
			copy((*model)[i:], x)
			require.NoError(t, q(t).Set(ctx, i, x...))
		},
		"at": func(t *rapid.T) {
			i := rapid.IntRange(-1, len(*model)).Draw(t, "i")
			x, err := q(t).At(ctx, i)
			if i < 0 || i == len(*model) {
				require.ErrorIs(t, err, data.ErrIndex)
				return
			}
			require.NoError(t, err)
			require.Equal(t, (*model)[i], x)
		},
		"reserve": func(t *rapid.T) {
			n := rapid.IntRange(0, 50).Draw(t, "n")
			require.NoError(t, q(t).Reserve(ctx, n))
			room, err := q(t).Cap(ctx)
			require.NoError(t, err)
			require.GreaterOrEqual(t, room, max(n, len(*model)))
		},
		"clear": func(t *rapid.T) {
			*model = (*model)[:0]
			require.NoError(t, q(t).Clear(ctx))
		},
		"all": all,
	}
	maps.Copy(actions, more)
	t.Repeat(actions)
	all(t)
	n, err := q(t).Len(ctx)
	require.NoError(t, err)
	require.Equal(t, len(*model), n)
	require.NoError(t, q(t).Destroy(ctx))
	_, err = q(t).Len(ctx)
	require.ErrorIs(t, err, data.ErrDestroyed)
}

// TestVector compares a vector with a slice, as any of the ranks.
func TestVector(t *testing.T) {
	worlds(t, 1<<16, func(t *testing.T, w []*data.Space) {
		rapid.Check(t, func(t *rapid.T) {
			who := rapid.IntRange(0, len(w)-1)
			made, err := data.NewVector[particle](ctx, w[who.Draw(t, "by")], who.Draw(t, "at"), rapid.IntRange(0, 10).Draw(t, "capacity"))
			require.NoError(t, err)
			as := openEach(t, w, func(s *data.Space) (*data.Vector[particle], error) {
				return data.OpenVector[particle](ctx, s, made.GA())
			})
			trySequence(t, func(t *rapid.T) sequence { return as[who.Draw(t, "rank")] }, new([]particle), nil)
			empty(t, w)
		})
	})
}

// TestDeque compares a deque with a slice, as any of the ranks.
func TestDeque(t *testing.T) {
	worlds(t, 1<<16, func(t *testing.T, w []*data.Space) {
		rapid.Check(t, func(t *rapid.T) {
			who := rapid.IntRange(0, len(w)-1)
			var model []particle
			made, err := data.NewDeque[particle](ctx, w[who.Draw(t, "by")], who.Draw(t, "at"), rapid.IntRange(0, 10).Draw(t, "capacity"))
			require.NoError(t, err)
			as := openEach(t, w, func(s *data.Space) (*data.Deque[particle], error) { return data.OpenDeque[particle](ctx, s, made.GA()) })
			trySequence(t, func(t *rapid.T) sequence { return as[who.Draw(t, "rank")] }, &model, map[string]func(*rapid.T){
				"push front": func(t *rapid.T) {
					x := particles.Draw(t, "x")
					model = slices.Insert(model, 0, x...)
					require.NoError(t, as[who.Draw(t, "rank")].PushFront(ctx, x...))
				},
				"pop front": func(t *rapid.T) {
					x, err := as[who.Draw(t, "rank")].PopFront(ctx)
					popModel(t, &model, 0, x, err)
				},
			})
			empty(t, w)
		})
	})
}

// TestVectorAddress checks that Address returns the address of the element, at all ranks.
func TestVectorAddress(t *testing.T) {
	worlds(t, 1<<12, func(t *testing.T, w []*data.Space) {
		last := len(w) - 1
		v, err := data.NewVector[uint64](ctx, w[0], last, 4)
		require.NoError(t, err)
		require.NoError(t, v.PushBack(ctx, 1, 2, 3))
		at, err := v.Address(ctx, 2)
		require.NoError(t, err)
		require.Equal(t, last, at.Rank())
		p := w[0].Process()
		require.NoError(t, p.Complete(ctx, acp.FetchAdd[uint64](p, nil, at, 39, acp.None)))
		x, err := v.Slice(ctx, 1, 2)
		require.NoError(t, err)
		require.Equal(t, []uint64{2, 42}, x)
		_, err = v.Address(ctx, 3)
		require.ErrorIs(t, err, data.ErrIndex)
	})
}
