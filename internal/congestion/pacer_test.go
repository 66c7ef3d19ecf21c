package congestion

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
)

// TestPacerRate checks that a sender that obeys the pacer has its rate, with bursts of at most a GSO
// batch and a packet.
func TestPacerRate(t *testing.T) {
	for _, rate := range []float64{1e5, 1e6, 125e6, 1.25e9} {
		p := pacer{packet: 4352}
		now, end, sent, bursts := reliability.Time(1), reliability.Time(100*reliability.Millisecond), 0.0, 0
		for now < end {
			burst := 0
			for p.nextSend(now, rate) <= now {
				p.onSent(4352, rate)
				burst += 4352
			}
			require.LessOrEqual(t, burst, maxBurst+4352)
			sent += float64(burst)
			bursts++
			now = p.nextSend(now, rate)
		}
		require.InDelta(t, rate*float64(now)/1e9, sent, maxBurst+4352, "%v", rate)
		require.LessOrEqual(t, bursts, max(int(float64(now)/burstTime), int(sent/maxBurst))+2, "no timer for each packet")
	}
}

// TestPacerIsLate checks that a late timer is made up for, but not a long pause.
func TestPacerIsLate(t *testing.T) {
	p := pacer{packet: 1000}
	const rate = 100e6
	burst := func(now reliability.Time) (n int) {
		for p.nextSend(now, rate) <= now {
			p.onSent(1000, rate)
			n += 1000
		}
		return n
	}
	require.Equal(t, 25_000, burst(1))
	next := p.nextSend(1, rate)
	require.EqualValues(t, 250_000, next)
	require.Equal(t, 50_000, burst(next+250_000), "both bursts")
	require.Equal(t, 425_000, burst(1e9), "as for maxLateness, not one second")
}
