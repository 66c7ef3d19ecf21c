package is

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
)

// TestRanksOfTestKeys compares the expected ranks in each iteration with NPB's.
func TestRanksOfTestKeys(t *testing.T) {
	require.Equal(t, 18+10, problems[nas.S].tests[1].wantRank(10))
	require.Equal(t, 65463-10, problems[nas.S].tests[4].wantRank(10))
	require.Equal(t, 1249-1, problems[nas.W].tests[0].wantRank(1))
	require.Equal(t, 123928+9, problems[nas.A].tests[2].wantRank(10))
	require.Equal(t, 8388264-9, problems[nas.A].tests[4].wantRank(10))
	require.Equal(t, 99+3, problems[nas.B].tests[4].wantRank(3))
	require.Equal(t, 33422937-3, problems[nas.B].tests[0].wantRank(3))
}

// TestKeys checks that the keys do not depend on the number of ranks, and are generated like
// NPB's.
func TestKeys(t *testing.T) {
	p := problems[nas.S]
	all := make([]int32, 1<<p.keys)
	p.generateKeys(all, 0)
	x := nas.Random(seed)
	for i, k := range all[:1000] {
		sum := 0.0
		for range 4 {
			x = x.Next()
			sum += x.Float64()
		}
		require.EqualValues(t, int(float64(int(1)<<p.values/4)*sum), k, i)
	}
	for _, size := range []int{2, 16} {
		var parts []int32
		for rank := range size {
			part := make([]int32, len(all)/size)
			p.generateKeys(part, rank)
			parts = append(parts, part...)
		}
		require.Equal(t, all, parts)
	}
}

// TestDistribute checks for any distribution of keys that all buckets are assigned completely,
// in order, and equally by all ranks.
func TestDistribute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := 1 << rapid.IntRange(0, 4).Draw(t, "log size")
		p := problem{keys: 9, values: 8, buckets: 4}
		buckets, share := 1<<p.buckets, 1<<p.keys/size
		ranks := make([]*sorter, size)
		totals := make([]int32, buckets)
		skew := rapid.IntRange(1, 8).Draw(t, "values")
		for r := range ranks {
			s := &sorter{p: p, rank: r, keys: make([]int32, share), sizes: make([]int32, buckets+tests), next: make([]int32, buckets),
				sorted: make([]int32, share), out: make([]int, size), outAt: make([]int, size)}
			for i := range s.keys {
				s.keys[i] = rapid.Int32Range(0, 1<<skew-1).Draw(t, "key")
			}
			s.sortIntoBuckets()
			require.True(t, slices.IsSortedFunc(s.sorted, func(a, b int32) int { return int(a>>4 - b>>4) }))
			for b := range totals {
				totals[b] += s.sizes[b]
			}
			ranks[r] = s
		}
		least, lower := int32(0), int32(0)
		for to, s := range ranks {
			s.totals = totals
			values := int32(s.assignBuckets())
			require.Equal(t, least, s.least)
			require.Equal(t, lower, s.lower)
			for _, from := range ranks {
				from.totals = totals
				from.assignBuckets()
				at := 0
				for r, n := range from.out {
					require.Equal(t, at, from.outAt[r])
					at += n
				}
				require.Equal(t, share, at)
				for _, k := range from.sorted[from.outAt[to]:][:from.out[to]] {
					require.LessOrEqual(t, least, k)
					require.Less(t, k, least+values)
				}
				lower += int32(from.out[to])
			}
			least += values
		}
		require.EqualValues(t, 1<<p.values, least)
	})
}

func TestRanks(t *testing.T) {
	require.ErrorIs(t, problems[nas.S].checkRanks(1024), nas.ErrRanks)
	require.NoError(t, problems[nas.S].checkRanks(512))
}
