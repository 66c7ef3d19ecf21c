package wire_test

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire"
)

var psnModulus = big.NewInt(1 << 24)

// anyPSN prefers PSNs near the wrap.
func anyPSN() *rapid.Generator[wire.PSN] {
	return rapid.Custom(func(t *rapid.T) wire.PSN {
		return wire.PSN(rapid.OneOf(
			rapid.Uint32Range(0, 1<<24-1),
			rapid.Uint32Range(0, 8),
			rapid.Uint32Range(1<<24-8, 1<<24-1),
			rapid.Uint32Range(1<<23-4, 1<<23+4),
		).Draw(t, "psn"))
	})
}

// TestPSNAgainstBigIntegers compares Add and Sub with addition and the shortest signed distance
// modulo 2^24 of unbounded integers.
func TestPSNAgainstBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPSN().Draw(t, "p")
		n := rapid.OneOf(rapid.IntRange(-1<<26, 1<<26), rapid.IntRange(-4, 4)).Draw(t, "n")
		sum := new(big.Int).Add(big.NewInt(int64(p)), big.NewInt(int64(n)))
		require.EqualValues(t, sum.Mod(sum, psnModulus).Int64(), p.Add(n))

		q := anyPSN().Draw(t, "q")
		diff := new(big.Int).Sub(big.NewInt(int64(p)), big.NewInt(int64(q)))
		half := big.NewInt(1 << 23)
		diff.Add(diff, half).Mod(diff, psnModulus).Sub(diff, half)
		require.EqualValues(t, diff.Int64(), p.Sub(q))
		require.Equal(t, diff.Sign() < 0, p.Less(q))
		require.Equal(t, diff.Sign() <= 0, p.LessEq(q))
	})
}

// TestPSNOrderAcrossTheWrap checks that within half the circle, order and distance are those of the
// integers that the PSNs represent.
func TestPSNOrderAcrossTheWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(0, 1<<40).Draw(t, "base")
		ahead := rapid.IntRange(0, 1<<23-1).Draw(t, "ahead")
		p := wire.PSN(base & wire.PSNMask)
		q := wire.PSN((base + int64(ahead)) & wire.PSNMask)
		require.Equal(t, q, p.Add(ahead))
		require.Equal(t, p, q.Add(-ahead))
		require.Equal(t, ahead, q.Sub(p))
		require.Equal(t, -ahead, p.Sub(q))
		require.Equal(t, ahead > 0, p.Less(q))
		require.False(t, q.Less(p))
		require.True(t, p.LessEq(q))
		require.Equal(t, ahead == 0, q.LessEq(p))
	})
}

func TestPSNCorners(t *testing.T) {
	const top = wire.PSN(wire.PSNMask)
	require.EqualValues(t, 0, top.Add(1))
	require.EqualValues(t, top, wire.PSN(0).Add(-1))
	require.Equal(t, 1, wire.PSN(0).Sub(top))
	require.Equal(t, 1<<23-1, wire.PSN(1<<23-1).Sub(0))
	require.Equal(t, -1<<23, wire.PSN(1<<23).Sub(0))
	require.Equal(t, -1<<23, wire.PSN(0).Sub(1<<23), "half the circle is behind from both ends")
}
