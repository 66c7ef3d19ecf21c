package data_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/acp/data"
)

// TestBadMalloc checks that invalid allocations and frees fail without effect.
func TestBadMalloc(t *testing.T) {
	world(t, 2, newOptions(acp.RC), 1<<13, func(w []*data.Space) {
		s := w[0]
		for _, c := range []struct {
			rank, n int
			want    error
		}{{2, 8, acp.ErrRank}, {-1, 8, acp.ErrRank}, {1, -1, acp.ErrLength}, {1, 1 << 13, data.ErrNoMemory}, {1, 1<<31 - 1, data.ErrNoMemory}} {
			_, err := s.Malloc(ctx, c.rank, c.n)
			require.ErrorIs(t, err, c.want)
			var e *acp.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "malloc", e.Op)
			require.Regexp(t, fmt.Sprintf("^acp: rank 0: malloc %d bytes at rank %d: [^:]", c.n, c.rank), err)
			require.NotContains(t, err.Error()[1:], "acp", "the prefix occurs once")
		}
		at, err := s.Malloc(ctx, 1, 200)
		require.NoError(t, err)
		for _, wrong := range []acp.GA{acp.Null, at.Add(64), at.Add(8), at.Add(256), at.Add(1 << 20), at &^ (1<<32 - 1), s.Process().StarterGA(1), at + 1<<32} {
			require.ErrorIs(t, s.Free(ctx, wrong), data.ErrNotAllocated, "%v", wrong)
		}
		require.ErrorIs(t, s.Free(ctx, at+1<<44), acp.ErrRank)
		require.NoError(t, w[1].Free(ctx, at))
		require.ErrorIs(t, s.Free(ctx, at), data.ErrNotAllocated)
		require.ErrorContains(t, s.Free(ctx, at), "free "+at.String())
		empty(t, w)
	})
}

// TestBadAddresses checks that structures opened by a wrong address or as a wrong kind are not
// changed.
func TestBadAddresses(t *testing.T) {
	world(t, 2, newOptions(acp.RC), 1<<14, func(w []*data.Space) {
		s := w[0]
		v, err := data.NewVector[int32](ctx, s, 1, 4)
		require.NoError(t, err)
		m, err := data.NewMap[string, int32](ctx, s, 1, data.MapOptions{})
		require.NoError(t, err)
		l, err := data.NewList[string](ctx, s, 1)
		require.NoError(t, err)
		e, err := l.PushBack(ctx, "an element")
		require.NoError(t, err)
		raw, err := s.Malloc(ctx, 1, 4096)
		require.NoError(t, err)
		require.NoError(t, s.Poke(raw, bytes.Repeat([]byte{0, 1, 2, 3, 0xfe, 0xff, 0, 0}, 512)))
		before, err := s.Peek(raw&^(1<<32-1), 1<<13) // the heap without its lock and counts
		require.NoError(t, err)
		open := []func(at acp.GA) error{
			func(at acp.GA) error { _, err := data.OpenVector[int32](ctx, s, at); return err },
			func(at acp.GA) error { _, err := data.OpenDeque[int32](ctx, s, at); return err },
			func(at acp.GA) error { _, err := data.OpenList[string](ctx, s, at); return err },
			func(at acp.GA) error { _, err := data.OpenMap[string, int32](ctx, s, at); return err },
			func(at acp.GA) error { _, err := data.OpenSet[string](ctx, s, at); return err },
		}
		right := map[acp.GA]int{v.GA(): 0, l.GA(): 2, m.GA(): 3}
		for i, f := range open {
			for _, at := range []acp.GA{v.GA(), l.GA(), m.GA(), e, raw, raw.Add(8), raw &^ (1<<32 - 1)} {
				if n, ok := right[at]; ok && n == i {
					require.NoError(t, f(at))
				} else if i == 4 && at == m.GA() {
					require.ErrorIs(t, f(at), data.ErrType) // it has another element type
				} else {
					require.ErrorIs(t, f(at), data.ErrKind, "%d %v", i, at)
				}
			}
			require.ErrorIs(t, f(acp.Null), acp.ErrRegion)
			require.ErrorIs(t, f(raw.Add(4)), acp.ErrAlign)
			require.ErrorIs(t, f(raw.Add(1<<20)), acp.ErrRange)
			require.ErrorIs(t, f(raw+3<<32), acp.ErrRegion)
			require.ErrorIs(t, f(raw+1<<44), acp.ErrRank)
		}
		_, err = data.OpenVector[float32](ctx, s, v.GA())
		require.ErrorIs(t, err, data.ErrType)
		_, err = data.OpenVector[int64](ctx, s, v.GA())
		require.ErrorIs(t, err, data.ErrType)
		require.ErrorContains(t, err, "4 bytes each, want 8 bytes each")
		_, err = data.OpenList[int32](ctx, s, l.GA())
		require.ErrorIs(t, err, data.ErrType)
		_, err = l.Value(ctx, raw)
		require.ErrorIs(t, err, data.ErrElement)
		_, err = l.Erase(ctx, acp.Null)
		require.ErrorIs(t, err, data.ErrElement)
		_, err = l.Insert(ctx, l.GA(), "before the list itself")
		require.ErrorIs(t, err, data.ErrElement)
		other, err := data.NewList[string](ctx, s, 1)
		require.NoError(t, err)
		_, err = other.Erase(ctx, e)
		require.ErrorIs(t, err, data.ErrElement)
		require.NoError(t, other.Destroy(ctx))
		for _, f := range open[2:3] {
			require.ErrorIs(t, f(other.GA()), data.ErrDestroyed)
		}
		after, err := s.Peek(raw&^(1<<32-1), 1<<13)
		require.NoError(t, err)
		require.Equal(t, before[1024:3072], after[1024:3072]) // the blocks of the structures
		require.Equal(t, before[4096:], after[4096:])         // and the program's bytes
	})
}

// TestBadTypes checks that types with references, and inexact key types, are rejected.
func TestBadTypes(t *testing.T) {
	type padded struct {
		A uint8
		B uint32
	}
	world(t, 1, newOptions(acp.RC), 1<<13, func(w []*data.Space) {
		s := w[0]
		try := func(want string, err error) {
			t.Helper()
			require.ErrorIs(t, err, data.ErrFlat)
			require.ErrorContains(t, err, want)
		}
		_, err := data.NewVector[*int](ctx, s, 0, 0)
		try("create vector of *int at rank 0", err)
		_, err = data.NewVector[string](ctx, s, 0, 0)
		try("string", err)
		_, err = data.NewVector[struct{}](ctx, s, 0, 0)
		try("type struct {} has size 0", err)
		_, err = data.NewDeque[uintptr](ctx, s, 0, 0)
		try("uintptr", err)
		_, err = data.NewList[struct{ S []byte }](ctx, s, 0)
		try("contains references", err)
		_, err = data.NewMap[padded, int](ctx, s, 0, data.MapOptions{})
		try("padding", err)
		_, err = data.NewMap[[2]float64, int](ctx, s, 0, data.MapOptions{})
		try("floating-point", err)
		_, err = data.NewMap[any, int](ctx, s, 0, data.MapOptions{})
		try("interface", err)
		_, err = data.NewSet[chan int](ctx, s, 0, data.MapOptions{})
		try("chan int", err)
		for _, o := range []data.MapOptions{{Buckets: -1}, {Buckets: 1 << 21}} {
			_, err = data.NewMap[int, int](ctx, s, 0, o)
			require.ErrorIs(t, err, acp.ErrOptions)
		}
		_, err = data.NewMap[int, int](ctx, s, 0, data.MapOptions{Ranks: []int{0, 1}})
		require.ErrorIs(t, err, acp.ErrRank)
		_, err = data.NewMap[int, int](ctx, s, 0, data.MapOptions{Buckets: 1 << 12})
		require.ErrorIs(t, err, data.ErrNoMemory)
		_, err = data.NewVector[int](ctx, s, 0, 1<<12)
		require.ErrorIs(t, err, data.ErrNoMemory)
		_, err = data.NewVector[int](ctx, s, 0, -1)
		require.ErrorIs(t, err, acp.ErrLength)
		v, err := data.NewVector[int](ctx, s, 0, 1)
		require.NoError(t, err)
		require.ErrorIs(t, v.Insert(ctx, 1, 7), data.ErrIndex)
		require.ErrorIs(t, v.Insert(ctx, -1, 7), data.ErrIndex)
		require.ErrorIs(t, v.Erase(ctx, 0, 1), data.ErrIndex)
		require.ErrorIs(t, v.Set(ctx, 0, 7), data.ErrIndex)
		require.ErrorIs(t, v.PushBack(ctx, make([]int, 1<<12)...), data.ErrNoMemory)
		require.ErrorIs(t, v.Reserve(ctx, 1<<31-1), acp.ErrLength)
		require.NoError(t, v.Destroy(ctx))
		empty(t, w)
	})
}

// TestBadMemory checks that overwritten structures are detected in bounded time.
func TestBadMemory(t *testing.T) {
	world(t, 2, newOptions(acp.RC), 1<<14, func(w []*data.Space) {
		s := w[0]
		word := func(w uint64) []byte { return binary.NativeEndian.AppendUint64(nil, w) }
		v, err := data.NewVector[int32](ctx, s, 1, 4)
		require.NoError(t, err)
		require.NoError(t, s.Poke(v.GA().Add(24), word(1<<40))) // number of elements
		require.ErrorIs(t, v.PushBack(ctx, 1), data.ErrDamaged)
		_, err = v.Slice(ctx, 0, 1<<30)
		require.ErrorIs(t, err, data.ErrDamaged)

		l, err := data.NewList[string](ctx, s, 1)
		require.NoError(t, err)
		e, err := l.PushBack(ctx, "round and round")
		require.NoError(t, err)
		require.NoError(t, s.Poke(e.Add(16), word(uint64(e)))) // next link to itself
		circle := 0
		for _, err := range l.All(ctx) {
			circle++
			require.ErrorIs(t, err, data.ErrDamaged)
		}
		require.Equal(t, 1, circle)
		require.NoError(t, s.Poke(e.Add(32), word(1<<60))) // length of the value
		_, err = l.PopBack(ctx)
		require.ErrorIs(t, err, data.ErrDamaged)

		m, err := data.NewMap[int64, int64](ctx, s, 1, data.MapOptions{Buckets: 1, Ranks: []int{1}})
		require.NoError(t, err)
		pair, err := s.Malloc(ctx, 1, 48)
		require.NoError(t, err)
		require.NoError(t, s.Free(ctx, pair))
		require.NoError(t, m.Set(ctx, 1, 2))                 // allocates the pair
		require.NoError(t, s.Poke(pair, word(uint64(pair)))) // next link to itself
		x, found, err := m.Find(ctx, 1)
		require.NoError(t, err)
		require.True(t, found)
		require.EqualValues(t, 2, x)
		_, _, err = m.Find(ctx, 2)
		require.ErrorIs(t, err, data.ErrDamaged)
		require.NoError(t, s.Poke(pair.Add(16), word(9)))
		_, _, err = m.Find(ctx, 1)
		require.ErrorIs(t, err, data.ErrDamaged)
		require.ErrorIs(t, m.Destroy(ctx), data.ErrDamaged)
	})
}

// TestBadOpen opens heaps that are too short, with an anchor in use, and with different anchors.
func TestBadOpen(t *testing.T) {
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		for _, o := range []data.Options{{Heap: 1}, {Heap: -1}, {Anchor: 4}, {Anchor: -8}, {Anchor: 4096}} {
			_, err := data.Open(ctx, p, o)
			require.ErrorIs(t, err, acp.ErrOptions)
		}
		s, err := data.Open(ctx, p, data.Options{Anchor: 8 * (p.Rank() + 1)})
		require.NoError(t, err)
		_, err = s.Malloc(ctx, 1-p.Rank(), 1)
		require.ErrorIs(t, err, data.ErrNoHeap)
		_, err = s.Malloc(ctx, p.Rank(), 1)
		require.NoError(t, err)
		_, err = data.Open(ctx, p, data.Options{Anchor: 8 * (p.Rank() + 1)})
		require.ErrorIs(t, err, acp.ErrOptions)
		require.NoError(t, s.Close(ctx))
		s, err = data.Open(ctx, p, data.Options{})
		require.NoError(t, err)
		_, err = s.Malloc(ctx, 1-p.Rank(), 1)
		require.NoError(t, err)
		return p.Sync(ctx)
	}))
}
