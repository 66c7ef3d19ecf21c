package verbsbench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// Both schemes bring every message to its place; the root checks all bytes.
func TestGather(t *testing.T) {
	for _, s := range []Scheme{Copy, ZeroCopy} {
		g, err := OpenGather(t.Context(), GatherOptions{Scheme: s, Senders: 3, Size: 5000})
		require.NoError(t, err)
		defer g.Close()
		all := measure.NewLatency()
		v, err := measure.Alternate(t.Context(), 2, g.LatencyRounds(30, all))
		require.NoError(t, err, s)
		require.Positive(t, v[0][1])
		require.EqualValues(t, 60, all.Stats().N)
		t.Logf("%s: %.1f us", s, v[0][1])
	}
}

func TestGatherOptions(t *testing.T) {
	for _, o := range []GatherOptions{{}, {Scheme: "hope", Senders: 1, Size: 8}, {Scheme: Copy, Size: 8}, {Scheme: Copy, Senders: 1, Size: 7}} {
		_, err := OpenGather(t.Context(), o)
		require.ErrorContains(t, err, "invalid gather options")
	}
}
