package perftest

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// slowPeak computes the peak from all intervals.
func slowPeak(posted, done []int64) float64 {
	best := math.Inf(1)
	for i := range posted {
		for j := i; j < len(done); j++ {
			if done[j] != 0 {
				best = min(best, float64(done[j]-posted[i])/float64(j-i+1))
			}
		}
	}
	return best
}

func TestPeakAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "messages")
		every := rapid.IntRange(1, n).Draw(t, "signaled")
		posted, done := make([]int64, n), make([]int64, n)
		at := int64(1000)
		for i := range posted {
			at += rapid.Int64Range(0, 50).Draw(t, "gap")
			posted[i] = at
		}
		end := int64(0)
		for i := range done {
			if (i+1)%every != 0 && i != n-1 {
				continue
			}
			end = max(end, posted[i]) + rapid.Int64Range(1, 400).Draw(t, "way")
			done[i] = end
		}
		require.InEpsilon(t, slowPeak(posted, done), peakMessageTime(posted, done), 1e-9)
	})
}

func TestPeakOfNothing(t *testing.T) {
	require.Zero(t, peakMessageTime([]int64{1, 2}, []int64{0, 0}))
	require.Zero(t, peakMessageTime([]int64{5}, []int64{5}))
}

// TestSummary compares the statistics with their definitions.
func TestSummary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.SliceOfN(rapid.Float64Range(0.1, 1000), 4, 300).Draw(t, "samples")
		row := LatencyRow{samples: slices.Clone(order)}
		row.summarize()
		sorted := slices.Sorted(slices.Values(order))
		body := sorted[:len(sorted)-2]
		require.Equal(t, order, row.samples)
		require.Equal(t, body[0], row.Min)
		require.Equal(t, sorted[len(body)], row.Max)
		below, above := 0, 0
		sum := 0.0
		for _, x := range body {
			sum += x
			if x < row.Typical {
				below++
			}
			if x > row.Typical {
				above++
			}
		}
		require.LessOrEqual(t, below, len(body)/2)
		require.LessOrEqual(t, above, len(body)/2)
		require.InEpsilon(t, sum/float64(len(body)), row.Average, 1e-9)
		require.GreaterOrEqual(t, row.Stdev, 0.0)
		require.LessOrEqual(t, row.Typical, row.P99)
		require.LessOrEqual(t, row.P99, row.P999)
		require.LessOrEqual(t, row.P999, row.Max)
	})
}

// TestRow checks a row that is computed by hand: 100 messages of 2^20 bytes in a second, and twice
// as fast at best.
func TestRow(t *testing.T) {
	p := &plan{Options: &Options{}}
	f := transfer{size: 1 << 20, messages: 100, peakTime: 5e6, from: 7e9, to: 8e9}
	require.Equal(t, BandwidthRow{Size: 1 << 20, Iters: 100, Peak: 200, Average: 100, MsgRate: 1e-4}, p.bandwidthRow(f))
	p.Gbits = true
	row := p.bandwidthRow(f)
	require.InEpsilon(t, 0.8388608, row.Average, 1e-9)
	require.InEpsilon(t, 2*0.8388608, row.Peak, 1e-9)
	require.Zero(t, p.bandwidthRow(transfer{size: 5}).Average)
}

func TestPhases(t *testing.T) {
	p := measureWindow{length: 100, margin: 10}
	require.False(t, p.expired(1<<40), "it has not begun")
	p.startWindow(1000)
	p.startWindow(5000) // too late
	for at, counts := range map[int64]bool{1000: false, 1009: false, 1010: true, 1089: true, 1090: false, 1200: false} {
		require.Equal(t, counts, p.inWindow(at), at)
		require.Equal(t, at >= 1100, p.expired(at), at)
	}
	p.restartWindow(2000)
	require.False(t, p.expired(2050))
	require.True(t, p.expired(2100))
}

func TestPace(t *testing.T) {
	o := Defaults(Test{Send, Bandwidth})
	p := &plan{Options: &o, txDepth: 4}
	free := p.newPacer(100)
	require.True(t, free.allow(nil))

	o.Rate = Rate{Limit: 1000, Units: RatePPS}
	pace := p.newPacer(100)
	now := int64(50)
	clock := func() int64 { return now }
	for range 2 {
		for range 4 { // a burst has as many messages as the queue
			require.True(t, pace.allow(clock))
			pace.consume(1)
		}
		require.False(t, pace.allow(clock))
		now += 4e6 - 1 // four messages at a thousand a second
		require.False(t, pace.allow(clock))
		now++
	}
	require.InEpsilon(t, 1e9/8/1000, Rate{Limit: 1, Units: RateGiga}.messagesPerSecond(1000), 1e-9)
	require.InEpsilon(t, 1048.576, Rate{Limit: 1, Units: RateMega}.messagesPerSecond(1000), 1e-9)
}

// TestSteps checks that steps stay within the memory, and do not overlap adjacent ones.
func TestSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Defaults(Test{Send, Bandwidth})
		o.Size = rapid.IntRange(1, 20000).Draw(t, "size")
		p := &plan{Options: &o, negotiated: negotiated{cycleBuffer: 4096 << rapid.IntRange(0, 4).Draw(t, "pages"), cacheLineSize: 64 << rapid.IntRange(0, 2).Draw(t, "line")}}
		by, slots := p.messageSlots(o.Size)
		require.LessOrEqual(t, (slots-1)*by+o.Size, max(p.cycleBuffer, o.Size), "the peer has no more")
		require.LessOrEqual(t, (slots-1)*by+o.Size, p.strideLen())
		if slots > 1 {
			require.GreaterOrEqual(t, by, o.Size)
			require.Zero(t, by%p.cacheLineSize)
		}
	})
}
