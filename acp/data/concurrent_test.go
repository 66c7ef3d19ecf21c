package data_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/data"
)

// runConcurrently runs f at all ranks concurrently, with two goroutines each.
func runConcurrently(t *testing.T, w []*data.Space, f func(s *data.Space, who int)) {
	t.Helper()
	var work sync.WaitGroup
	for who := range 2 * len(w) {
		work.Go(func() { f(w[who/2], who) })
	}
	work.Wait()
	require.False(t, t.Failed())
}

// runFourRanks runs f in jobs of four ranks, over both transports.
func runFourRanks(t *testing.T, heap int, f func(t *testing.T, w []*data.Space)) {
	for name, net := range nets {
		t.Run(name, func(t *testing.T) {
			world(t, 4, newOptions(net), heap, func(w []*data.Space) { f(t, w) })
		})
	}
}

// TestMallocTogether has all ranks allocate and free everywhere concurrently. Blocks must be
// disjoint, and at the end none is allocated. The heaps are short, so some allocations fail.
func TestMallocTogether(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	runFourRanks(t, 1<<13, func(t *testing.T, w []*data.Space) {
		runConcurrently(t, w, func(s *data.Space, who int) {
			r := rand.New(rand.NewPCG(seed, uint64(who)))
			live := map[acp.GA]int{} // length in bytes
			free := func(at acp.GA) {
				b, err := s.Peek(at, live[at])
				require.NoError(t, err)
				require.Equal(t, bytes.Repeat([]byte{byte(who)}, len(b)), b, "the block at %v of %d is also another's", at, who)
				delete(live, at)
				require.NoError(t, s.Free(ctx, at))
			}
			for range 8 {
				n := r.IntN(1000)
				at, err := s.Malloc(ctx, r.IntN(len(w)), n)
				if !errors.Is(err, data.ErrNoMemory) {
					require.NoError(t, err)
					live[at] = n
					require.NoError(t, s.Poke(at, bytes.Repeat([]byte{byte(who)}, n)))
				}
				for at := range live {
					if r.IntN(2) == 0 {
						free(at)
					}
					break
				}
			}
			for at := range live {
				free(at)
			}
		})
		empty(t, w)
		for rank := range w { // completely merged again
			h, err := w[0].Stats(ctx, rank)
			require.NoError(t, err)
			at, err := w[0].Malloc(ctx, rank, int(h.Capacity)/2)
			require.NoError(t, err)
			require.NoError(t, w[0].Free(ctx, at))
		}
	})
}

// TestMapTogether has all ranks insert the same keys, increment their values and erase them
// concurrently. Each key is inserted and erased once, and no increment is lost.
func TestMapTogether(t *testing.T) {
	const keys, rounds = 4, 2
	runFourRanks(t, 1<<15, func(t *testing.T, w []*data.Space) {
		made, err := data.NewMap[uint16, int](ctx, w[0], 3, data.MapOptions{Buckets: 2})
		require.NoError(t, err)
		added, erased, seen := make([]int, 2*len(w)), make([]int, 2*len(w)), make([]int, 2*len(w))
		sum := func(n []int) (sum int) {
			for _, n := range n {
				sum += n
			}
			return sum
		}
		runConcurrently(t, w, func(s *data.Space, who int) {
			m, err := data.OpenMap[uint16, int](ctx, s, made.GA())
			require.NoError(t, err)
			for i := range rounds * keys {
				k := uint16((i + who) % keys)
				ok, err := m.Insert(ctx, k, 0)
				require.NoError(t, err)
				require.NoError(t, m.Update(ctx, k, func(v int, found bool) int { return v + 1 }))
				if ok {
					added[who]++
				}
			}
		})
		require.Equal(t, keys, sum(added))
		for p, err := range made.All(ctx) {
			require.NoError(t, err)
			require.Equal(t, rounds*2*len(w), p.Value, "key %d", p.Key)
		}
		runConcurrently(t, w, func(s *data.Space, who int) {
			m, err := data.OpenMap[uint16, int](ctx, s, made.GA())
			require.NoError(t, err)
			for k := range uint16(keys) {
				v, found, err := m.Find(ctx, k)
				require.NoError(t, err)
				if found {
					require.Equal(t, rounds*2*len(w), v, "key %d", k)
				}
				found, err = m.Erase(ctx, k)
				require.NoError(t, err)
				if found {
					erased[who]++
				}
			}
			for _, err := range m.All(ctx) {
				require.NoError(t, err)
				seen[who]++
			}
		})
		require.Equal(t, keys, sum(erased))
		require.Zero(t, sum(seen))
		n, err := made.Len(ctx)
		require.NoError(t, err)
		require.Zero(t, n)
		require.NoError(t, made.Destroy(ctx))
		empty(t, w)
	})
}

// TestPopsTogether has all ranks push to a vector, a deque and a list and pop from them
// concurrently. Each value is popped once.
func TestPopsTogether(t *testing.T) {
	const each = 3
	runFourRanks(t, 1<<14, func(t *testing.T, w []*data.Space) {
		v, err := data.NewVector[int](ctx, w[0], 1, 0)
		require.NoError(t, err)
		d, err := data.NewDeque[int](ctx, w[0], 2, 0)
		require.NoError(t, err)
		l, err := data.NewList[int](ctx, w[0], 3)
		require.NoError(t, err)
		var mu sync.Mutex
		var out [3][]int
		runConcurrently(t, w, func(s *data.Space, who int) {
			v, err := data.OpenVector[int](ctx, s, v.GA())
			require.NoError(t, err)
			d, err := data.OpenDeque[int](ctx, s, d.GA())
			require.NoError(t, err)
			l, err := data.OpenList[int](ctx, s, l.GA())
			require.NoError(t, err)
			for i := range each {
				x := who*each + i
				_, listed := l.On(s.Process().Rank()).PushFront(ctx, x)
				require.NoError(t, errors.Join(v.PushBack(ctx, x), d.PushFront(ctx, x), listed))
				a, err := v.PopBack(ctx)
				require.NoError(t, err)
				b, err := d.PopBack(ctx)
				require.NoError(t, err)
				c, err := l.PopBack(ctx)
				require.NoError(t, err)
				mu.Lock()
				out[0], out[1], out[2] = append(out[0], a), append(out[1], b), append(out[2], c)
				mu.Unlock()
			}
		})
		for _, got := range out {
			slices.Sort(got)
			require.Len(t, got, 2*len(w)*each)
			for i, x := range got {
				require.Equal(t, i, x)
			}
		}
		require.NoError(t, errors.Join(v.Destroy(ctx), d.Destroy(ctx), l.Destroy(ctx)))
		empty(t, w)
	})
}
