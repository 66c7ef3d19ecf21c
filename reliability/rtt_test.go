package reliability

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestRTTEstimates checks that the estimate is between the smallest and the largest sample, and
// converges.
func TestRTTEstimates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r RTT
		now := Time(1)
		low, high := int64(1<<62), int64(0)
		for range rapid.IntRange(1, 100).Draw(t, "samples") {
			sample := rapid.Int64Range(1, Millisecond).Draw(t, "sample")
			low, high = min(low, sample), max(high, sample)
			r.OnSent(now, 7)
			now += Time(sample)
			r.OnAck(now)
			require.GreaterOrEqual(t, r.Smoothed(), low)
			require.LessOrEqual(t, r.Smoothed(), high)
			require.GreaterOrEqual(t, r.ProbeTimeout(), int64(2*Millisecond))
		}
		for range 200 {
			r.OnSent(now, 7)
			now += 5000
			r.OnAck(now)
		}
		require.InDelta(t, 5000, r.Smoothed(), 20)
	})
}

// TestRTTTimesOnePacket checks that one packet is timed at a time, the first, and that a
// retransmitted one is not.
func TestRTTTimesOnePacket(t *testing.T) {
	var r RTT
	_, ok := r.TimedPSN()
	require.False(t, ok)
	r.OnAck(9) // no packet was timed
	require.Zero(t, r.Smoothed())
	r.OnSent(10, 1)
	r.OnSent(20, 2)
	psn, ok := r.TimedPSN()
	require.True(t, ok)
	require.EqualValues(t, 1, psn)
	r.OnAck(110)
	require.EqualValues(t, 100, r.Smoothed())
	r.OnSent(200, 3)
	r.StopTiming()
	r.OnAck(100_000)
	require.EqualValues(t, 100, r.Smoothed())
	require.EqualValues(t, 10*Millisecond, (&RTT{}).ProbeTimeout(), "without a sample")
}

func TestEarlier(t *testing.T) {
	require.EqualValues(t, 3, Earlier(3, 5))
	require.EqualValues(t, 3, Earlier(5, 3))
	require.EqualValues(t, 3, Earlier(0, 3), "0 is never")
	require.EqualValues(t, 3, Earlier(3, 0))
	require.Zero(t, Earlier(0, 0))
}
