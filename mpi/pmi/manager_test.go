package pmi

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/internal/pmi/server"
)

// forEachKind runs a test with every implementation.
func forEachKind(t *testing.T, test func(t *testing.T, make func(n int) []Manager)) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			test(t, func(n int) []Manager { return kind(t, n) })
		})
	}
}

func TestExchange(t *testing.T) {
	forEachKind(t, func(t *testing.T, make func(int) []Manager) {
		list := make(5)
		ctx := soon(t)
		everyRank(t, list, func(m Manager) error {
			for round := range 3 {
				err := exchange(ctx, m, round, func(rank int) string { return strings.Repeat(string(rune('a'+rank)), 10+rank*1500*round) })
				if err != nil {
					return err
				}
			}
			return nil
		})
		for i, m := range list {
			require.Equal(t, i, m.Rank())
			require.Equal(t, 5, m.Size())
			require.Equal(t, list[0].JobID(), m.JobID())
			require.Equal(t, 0, m.Node(4))
			require.Panics(t, func() { m.Node(5) })
		}
		everyRank(t, list, Manager.Finalize)
		for _, m := range list {
			require.ErrorIs(t, m.Finalize(), ErrFinalized)
			require.ErrorIs(t, m.Put("a", "b"), ErrFinalized)
			require.ErrorIs(t, m.Fence(ctx), ErrFinalized)
			_, err := m.Get(ctx, "a")
			require.ErrorIs(t, err, ErrFinalized)
		}
	})
}

// TestFences checks that a fence ends only when all ranks have entered it, and that all values put
// before are visible then. A rank that cancels a fence and enters again waits for the same one.
func TestFences(t *testing.T) {
	forEachKind(t, func(t *testing.T, make func(int) []Manager) {
		list := make(3)
		ctx := soon(t)
		require.NoError(t, list[0].Put("early", "0"))
		cancelled, cancel := context.WithCancelCause(ctx)
		tired := errors.New("tired")
		gaveUp := asked(func() error { return list[0].Fence(cancelled) })
		cancel(tired)
		require.ErrorIs(t, <-gaveUp, tired)
		require.ErrorIs(t, list[0].Fence(cancelled), tired)

		again := asked(func() error { return list[0].Fence(ctx) })
		one := asked(func() error { return list[1].Fence(ctx) })
		select {
		case err := <-again:
			t.Fatal("through without rank 2:", err)
		case err := <-one:
			t.Fatal("through without rank 2:", err)
		default:
		}
		require.NoError(t, list[2].Put("late", "2"))
		require.NoError(t, list[2].Fence(ctx))
		require.NoError(t, <-again)
		require.NoError(t, <-one)
		for _, m := range list {
			for key, want := range map[string]string{"early": "0", "late": "2"} {
				got, err := m.Get(ctx, key)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
		}
		// The next call enters the next fence.
		everyRank(t, list, func(m Manager) error { return m.Fence(ctx) })
	})
}

// TestGetAfterCanceledFence checks that a request after a canceled fence waits for the end
// of that fence, which counts as entered.
func TestGetAfterCanceledFence(t *testing.T) {
	for _, d := range []protocol{&protocolV1{}, protocolV2{}} {
		job, list := testServed(t, server.Options{Size: 2, ID: "kvs"}, d)
		ctx := soon(t)
		cancelled, cancel := context.WithCancel(ctx)
		first := asked(func() error { return list[0].Fence(cancelled) })
		for job.Ranks()[0].State != server.AtFence { // the server has the request
			require.NoError(t, ctx.Err())
			runtime.Gosched()
		}
		cancel()
		require.ErrorIs(t, <-first, context.Canceled)
		got := asked(func() error { _, err := list[0].Get(ctx, "k"); return err })
		require.NoError(t, list[1].Put("k", "v"))
		require.NoError(t, list[1].Fence(ctx))
		require.NoError(t, <-got)
		require.NoError(t, list[0].Fence(ctx)) // the same fence: rank 1 has left it
	}
}

func asked(do func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return done
}

func TestGetMissingKey(t *testing.T) {
	forEachKind(t, func(t *testing.T, make func(int) []Manager) {
		m := make(1)[0]
		_, err := m.Get(soon(t), "nobody")
		require.ErrorIs(t, err, ErrNotFound)
		require.ErrorContains(t, err, `"nobody"`)
	})
}

func TestKeys(t *testing.T) {
	forEachKind(t, func(t *testing.T, make func(int) []Manager) {
		m := make(1)[0]
		for _, key := range []string{"", "a b", "a=b", "a;b", "a\nb", "a+1", "ä", strings.Repeat("k", maxKey+1)} {
			require.ErrorIs(t, m.Put(key, "v"), ErrKey, key)
			_, err := m.Get(soon(t), key)
			require.ErrorIs(t, err, ErrKey, key)
		}
		longest := strings.Repeat("k", maxKey)
		require.NoError(t, m.Put(longest, "v"))
		require.NoError(t, m.Fence(soon(t)))
		got, err := m.Get(soon(t), longest)
		require.NoError(t, err)
		require.Equal(t, "v", got)
	})
	require.Error(t, NewLocal(1)[0].Put("k", strings.Repeat("x", maxValue+1)))
}

func TestEndedContexts(t *testing.T) {
	forEachKind(t, func(t *testing.T, make func(int) []Manager) {
		m := make(2)[0]
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := m.Get(ctx, "a")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, m.Fence(ctx), context.Canceled)
	})
}

// TestGoroutines calls a manager from several goroutines.
func TestGoroutines(t *testing.T) {
	forEachKind(t, func(t *testing.T, make func(int) []Manager) {
		m := make(1)[0]
		ctx := soon(t)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				key := "key-" + string(rune('a'+i))
				if err := errors.Join(m.Put(key, key), m.Fence(ctx)); err != nil {
					t.Error(err)
					return
				}
				if got, err := m.Get(ctx, key); err != nil || got != key {
					t.Error(key, got, err)
				}
			})
		}
		all.Wait()
	})
}

// TestPutGetModel compares Put and Get with a map, with values of all lengths and bytes.
func TestPutGetModel(t *testing.T) {
	forEachKind(t, func(t *testing.T, make func(int) []Manager) {
		list := make(2)
		ctx := soon(t)
		known := map[string]string{}
		rapid.Check(t, func(t *rapid.T) {
			put := map[string]string{}
			for range rapid.IntRange(0, 4).Draw(t, "puts") {
				key := rapid.StringMatching(`[a-zA-Z0-9._:/-]{1,40}`).Filter(func(s string) bool { return known[s] == "" }).Draw(t, "key")
				value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9.:/,-]{0,300}`),
					rapid.Map(rapid.IntRange(0, 6000), func(n int) string { return strings.Repeat("\x00ä ;=", n)[:n] })).Draw(t, "value")
				require.NoError(t, list[rapid.IntRange(0, 1).Draw(t, "by")].Put(key, value))
				put[key] = value
			}
			everyRank(t, list, func(m Manager) error { return m.Fence(ctx) })
			for key, value := range put {
				known[key] = value
			}
			for key, value := range known {
				got, err := list[len(key)%2].Get(ctx, key)
				require.NoError(t, err)
				require.Equal(t, value, got)
			}
			if len(known) > 50 {
				clear(known)
			}
		})
	})
}

func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat("x", n) })).Draw(t, "value")
		room := rapid.IntRange(minPartSize, 100).Draw(t, "room")
		parts := encodeValue(value, room)
		for _, part := range parts {
			require.NotEmpty(t, part)
			require.LessOrEqual(t, len(part), room)
		}
		kind, n, text, err := decodeHead(parts[0])
		require.NoError(t, err)
		require.Len(t, parts, n)
		got, err := decodeParts(kind, text+strings.Join(parts[1:], ""))
		require.NoError(t, err)
		require.Equal(t, value, got)
	})
	for _, part := range []string{"", "t", "t:", "x1:a", "t0:a", "t-1:a", "t99999999:a", "plain"} {
		_, _, _, err := decodeHead(part)
		require.Error(t, err, part)
	}
	_, err := decodeParts('b', "*")
	require.Error(t, err)
}

func TestLocalAbort(t *testing.T) {
	list := NewLocal(3)
	waits := asked(func() error { return list[0].Fence(soon(t)) })
	require.NoError(t, list[1].Abort(7, "no more memory"))
	err := <-waits
	require.ErrorIs(t, err, ErrAborted)
	require.EqualError(t, err, "pmi: job aborted: by rank 1 with code 7: no more memory")
	require.ErrorIs(t, list[2].Put("a", "b"), ErrAborted)
	require.ErrorIs(t, list[2].Abort(1, ""), ErrAborted)
	require.NotEqual(t, list[0].JobID(), NewLocal(1)[0].JobID())
	require.Panics(t, func() { NewLocal(0) })
}

func TestAbort(t *testing.T) {
	for _, d := range []protocol{&protocolV1{}, protocolV2{}} {
		events := make(chan server.Event, 1)
		_, list := testServed(t, server.Options{Size: 2, ID: "kvs", Notify: func(e server.Event) { events <- e }}, d)
		// A rank that waits at a fence can abort the job from another goroutine.
		ctx, cancel := context.WithCancel(soon(t))
		waits := asked(func() error { return list[1].Fence(ctx) })
		require.NoError(t, list[1].Abort(7, "no more memory, 100% sure"))
		require.Equal(t, server.Event{Kind: server.Abort, Rank: 1, Code: 7, Why: "no more memory, 100% sure"}, <-events)
		cancel()
		require.ErrorIs(t, <-waits, context.Canceled)
	}
}

func TestNodes(t *testing.T) {
	_, list := testServed(t, server.Options{Size: 5, ID: "kvs", Nodes: []int{0, 1, 0, 1, 0}}, &protocolV1{}, protocolV2{})
	for _, m := range list {
		require.Equal(t, []int{0, 1, 0, 1, 0}, []int{m.Node(0), m.Node(1), m.Node(2), m.Node(3), m.Node(4)})
	}
}
