package rnic

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMover checks that the service moves after packets that arrived while another thread ran, less and
// less often if that does not help, and soon again if it has helped for long.
func TestMover(t *testing.T) {
	var m mover
	now := int64(1)
	// packetsUntilMove returns the number of packets until a move, 10 us apart and each after a yield.
	packetsUntilMove := func(yield time.Duration) (n int) {
		for n = 1; n < 100_000; n++ {
			m.recordYield(yield)
			if now += int64(10 * time.Microsecond); m.recordPacket(now) {
				break
			}
		}
		return n
	}
	require.Equal(t, 100_000, packetsUntilMove(minRequestTime-1))
	require.Equal(t, packetsBeforeMove, packetsUntilMove(minRequestTime))
	for pause := minMovePause; pause < maxMovePause; pause *= 2 {
		require.InDelta(t, pause/(10*time.Microsecond), packetsUntilMove(minRequestTime), 1)
	}
	for range 2 {
		require.InDelta(t, maxMovePause/(10*time.Microsecond), packetsUntilMove(minRequestTime), 1)
	}

	now += 2 * helpfulMovesPauses * int64(maxMovePause)
	for range packetsBeforeMove - 1 {
		m.recordYield(minRequestTime)
		require.False(t, m.recordPacket(now))
	}
	require.False(t, m.recordPacket(now), "a poll without a yield found it")
	require.Equal(t, packetsBeforeMove, packetsUntilMove(minRequestTime))
	require.InDelta(t, minMovePause/(10*time.Microsecond), packetsUntilMove(minRequestTime), 1)
}
