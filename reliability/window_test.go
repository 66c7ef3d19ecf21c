package reliability

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestWindowBounds checks that the window stays within its bounds, that one packet is always
// permitted, and that growth and loss change it by the right amount.
func TestWindowBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mtu := rapid.SampledFrom([]int{256, 512, 1024, 2048, 4096}).Draw(t, "mtu")
		buffer := rapid.OneOf(rapid.Just(0), rapid.IntRange(1, 4<<20)).Draw(t, "buffer")
		var w Window
		w.Reset(mtu, buffer)
		low, high := 2*mtu, MaxWindow
		if buffer > 0 {
			high = min(max(2*buffer, low), MaxWindow)
			require.Equal(t, high, w.Size(), "a known buffer is used from the start")
		} else {
			require.Equal(t, DefaultWindow, w.Size())
		}
		now, lastCut := Time(1), Time(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += Time(rapid.Int64Range(0, 2*Millisecond).Draw(t, "passes"))
			before := w.Size()
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				n := rapid.IntRange(0, 64<<10).Draw(t, "acked")
				w.OnAck(n)
				require.GreaterOrEqual(t, w.Size(), before)
				require.LessOrEqual(t, w.Size()-before, (before/8+n)/8, "an eighth of what was acknowledged")
			case 2:
				rtt := rapid.Int64Range(0, Millisecond).Draw(t, "rtt")
				w.OnLoss(now, rtt)
				if lastCut != 0 && int64(now-lastCut) < rtt {
					require.Equal(t, before, w.Size(), "once a round trip")
					continue
				}
				require.Equal(t, max(before*7/10, low), w.Size())
				lastCut = now
			case 3:
				if rapid.IntRange(0, 9).Draw(t, "rare") == 0 {
					w.OnTimeout(now)
					require.Equal(t, low, w.Size())
					lastCut = now
				}
			}
			require.GreaterOrEqual(t, w.Size(), low)
			require.LessOrEqual(t, w.Size(), high)
			require.True(t, w.Allows(0, 1<<30))
			n := rapid.IntRange(1, mtu).Draw(t, "packet")
			require.True(t, w.Allows(w.Size()-n, n))
			require.False(t, w.Allows(w.Size()-n+1, n))
		}
	})
}

// TestWindowRecovers checks that acknowledged bytes reopen a collapsed window up to its limit.
func TestWindowRecovers(t *testing.T) {
	var w Window
	w.Reset(4096, 200<<10)
	full := w.Size()
	w.OnTimeout(5)
	rounds := 0
	for ; w.Size() < full; rounds++ {
		require.Less(t, rounds, 10_000)
		w.OnAck(w.Size())
	}
	require.Equal(t, full, w.Size())
	require.Less(t, rounds, 60, "some dozens of round trips")
	w.OnAck(1 << 20)
	require.Equal(t, full, w.Size())
}
