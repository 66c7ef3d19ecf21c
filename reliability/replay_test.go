package reliability_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/wire"
)

// TestReplayAgainstModel compares with the set of all executed requests, for a peer that follows
// the rule, also where PSNs wrap.
func TestReplayAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r reliability.Replay
		start := rapid.SampledFrom([]int{0, 1<<24 - 70}).Draw(t, "start")
		if start > 0 { // steps that a peer may make
			for at := 0; at < start; at += reliability.ReplayWindow {
				r.MarkExecuted(wire.PSN(0).Add(at))
			}
			for at := start - 2*reliability.ReplayWindow; at < start; at++ {
				if r.Classify(wire.PSN(0).Add(at)) == reliability.Fresh {
					r.MarkExecuted(wire.PSN(0).Add(at))
				}
			}
		}
		done := map[int]bool{}
		una := start // all earlier requests are acknowledged
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			n := rapid.IntRange(una-100, una+reliability.ReplayWindow-1).Draw(t, "request")
			if n < 0 {
				continue
			}
			got := r.Classify(wire.PSN(0).Add(n))
			switch {
			case n >= una && !done[n]:
				require.Equal(t, reliability.Fresh, got)
				r.MarkExecuted(wire.PSN(0).Add(n))
				done[n] = true
			case n >= una:
				require.Equal(t, reliability.Repeated, got)
			default:
				require.NotEqual(t, reliability.Fresh, got, "answered, and would be carried out again")
			}
			newest, mask := r.SelectiveAck()
			for i := range reliability.ReplayWindow {
				at := (int(newest) - start - i) << 8 >> 8 // a distance
				if at += start; at >= una {
					require.Equal(t, done[at], mask&(1<<i) != 0, at)
				}
			}
			if rapid.Bool().Draw(t, "answer") {
				for done[una] {
					una++
				}
			}
		}
	})
}

func TestReplayFarAhead(t *testing.T) {
	var r reliability.Replay
	require.Equal(t, reliability.Premature, r.Classify(reliability.ReplayWindow))
	require.Equal(t, reliability.Fresh, r.Classify(reliability.ReplayWindow-1))
	require.Equal(t, reliability.Repeated, r.Classify(wire.PSN(0).Add(-1)))
	require.Equal(t, reliability.Outdated, r.Classify(wire.PSN(0).Add(-65)))
}
