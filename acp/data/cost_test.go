package data_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/data"
)

// TestCosts checks the number of copies and atomics of each operation on uncontended memory of
// another rank. docs/acp.md lists the same figures.
func TestCosts(t *testing.T) {
	world(t, 2, newOptions(acp.RC), 1<<14, func(w []*data.Space) {
		s := w[0]
		v, err := data.NewVector[int64](ctx, s, 1, 8)
		require.NoError(t, err)
		d, err := data.NewDeque[int64](ctx, s, 1, 8)
		require.NoError(t, err)
		l, err := data.NewList[int64](ctx, s, 1)
		require.NoError(t, err)
		m, err := data.NewMap[int64, int64](ctx, s, 1, data.MapOptions{Ranks: []int{1}, Buckets: 64})
		require.NoError(t, err)
		at, err := s.Malloc(ctx, 1, 1000)
		require.NoError(t, err)
		_, err = s.Malloc(ctx, 1, 1000) // the other half
		require.NoError(t, err)
		var e acp.GA
		for _, c := range []struct {
			name string
			want int
			f    func() error
		}{
			{"free, beside a block that is not free", 9, func() error { return s.Free(ctx, at) }},
			{"malloc, of a block that is free", 9, func() (err error) { at, err = s.Malloc(ctx, 1, 1000); return err }},
			{"vector: push back", 5, func() error { return v.PushBack(ctx, 1, 2, 3) }},
			{"vector: at", 4, func() error { _, err := v.At(ctx, 0); return err }},
			{"vector: set", 4, func() error { return v.Set(ctx, 0, 5) }},
			{"vector: len", 3, func() error { _, err := v.Len(ctx); return err }},
			{"vector: insert", 6, func() error { return v.Insert(ctx, 0, 4) }},
			{"vector: erase", 6, func() error { return v.Erase(ctx, 0, 1) }},
			{"vector: pop back", 5, func() error { _, err := v.PopBack(ctx); return err }},
			{"vector: all", 4, func() error {
				for range v.All(ctx) {
				}
				return nil
			}},
			{"deque: push front", 5, func() error { return d.PushFront(ctx, 1) }},
			{"deque: pop front", 5, func() error { _, err := d.PopFront(ctx); return err }},
			{"list: push back", 12, func() (err error) { e, err = l.PushBack(ctx, 1); return err }},
			{"list: insert", 19, func() error { _, err := l.Insert(ctx, e, 1); return err }},
			{"list: erase", 15, func() error { _, err := l.Erase(ctx, e); return err }},
			{"list: all", 4, func() error {
				for range l.All(ctx) {
				}
				return nil
			}},
			{"map: insert", 15, func() error { _, err := m.Insert(ctx, 1, 1); return err }},
			{"map: find", 4, func() error { _, _, err := m.Find(ctx, 1); return err }},
			{"map: find nothing", 3, func() error { _, _, err := m.Find(ctx, 2); return err }},
			{"map: update", 5, func() error { return m.Update(ctx, 1, func(v int64, _ bool) int64 { return v + 1 }) }},
			{"map: erase", 14, func() error { _, err := m.Erase(ctx, 1); return err }},
			{"map: len", 1, func() error { _, err := m.Len(ctx); return err }},
		} {
			before := s.Process().Stats().Operations
			require.NoError(t, c.f(), c.name)
			require.EqualValues(t, c.want, s.Process().Stats().Operations-before, c.name)
		}
	})
}
