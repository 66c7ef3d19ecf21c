package ep

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// TestPieces checks that the result does not depend on the division of the pairs.
func TestPieces(t *testing.T) {
	whole := sumPairs(0, 1<<16)
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.Uint64Range(0, 1<<16).Draw(t, "cut")
		a, b := sumPairs(0, cut), sumPairs(cut, 1<<16-cut)
		for i := range whole.count {
			require.Equal(t, whole.count[i], a.count[i]+b.count[i])
		}
		for i := range whole.sum {
			require.InDelta(t, whole.sum[i], a.sum[i]+b.sum[i], 1e-8)
		}
	})
}

func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, size := rapid.IntRange(0, 32).Draw(t, "m"), rapid.IntRange(1, 1000).Draw(t, "size")
		next := uint64(0)
		for rank := range size {
			first, n := pairShare(m, rank, size)
			require.Equal(t, next, first)
			require.LessOrEqual(t, n, uint64(1)<<m/uint64(size)+1)
			next += n
		}
		require.Equal(t, uint64(1)<<m, next)
	})
}

// TestAnyRanks runs numbers of ranks that are not powers of two.
func TestAnyRanks(t *testing.T) {
	require.NoError(t, mpitest.Run(3, func(w mpi.World) error {
		r, err := Run(w.Comm, nas.S)
		if err == nil && (!r.Verified() || r.Processes != 3) {
			err = fmt.Errorf("%v", r)
		}
		return err
	}))
}

// TestCounts compares the counts with those of NPB, without tolerance.
func TestCounts(t *testing.T) {
	if racesync.Enabled {
		t.Skip("one goroutine, and 16 million pairs")
	}
	s := sumPairs(pairShare(problems[nas.S].m, 0, 1))
	require.Equal(t, [16]int64{6140517, 5865300, 1100361, 68546, 1648, 17}, s.count)
	pairs := int64(0)
	for _, n := range s.count {
		pairs += n
	}
	require.EqualValues(t, 13176389, pairs)
}
