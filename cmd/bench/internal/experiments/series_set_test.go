package experiments

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// The mean of a round includes slow events, like the figure of a whole round.
func TestMeanRounds(t *testing.T) {
	var fails error
	events := func(into *measure.Latency) measure.Round {
		return func(context.Context) (float64, error) {
			for _, us := range []time.Duration{1, 1, 1, 1, 6} {
				into.Record(us * time.Microsecond)
			}
			return into.Median(), fails
		}
	}
	var set seriesSet
	set.addEvents("median", events)
	set.addMeans("mean", events)
	samples, err := set.runAlternating(t.Context(), 3)
	require.NoError(t, err)
	for i, want := range []float64{1, 2} {
		require.Len(t, samples[i].Figures, 3)
		for _, figure := range samples[i].Figures {
			require.InEpsilon(t, want, figure, 0.002, samples[i].Series)
		}
		require.EqualValues(t, 15, samples[i].Stats.N)
	}

	fails = errors.New("the round")
	_, err = set.runAlternating(t.Context(), 1)
	require.ErrorIs(t, err, fails)
}

// An opponent that fails is left out, and the others continue.
func TestOpponentFails(t *testing.T) {
	var set seriesSet
	calls := 0
	set.addSeries("ours", func(context.Context) (float64, error) { return 5, nil })
	set.addOpponent("theirs", "Debian: theirs", func(context.Context) (float64, error) { return 7, nil })
	set.addOpponent("broken", "Debian: broken", func(context.Context) (float64, error) {
		calls++
		if calls == 2 {
			return 0, errors.New("died")
		}
		return 6, nil
	})
	samples, err := set.runAlternating(t.Context(), 4)
	require.NoError(t, err)
	require.Len(t, samples, 2)
	require.Equal(t, "theirs", samples[1].Series)
	require.EqualError(t, set.failed["broken"], "(Debian: broken): died")
	require.Equal(t, 2, calls)

	ctx, cancel := context.WithCancel(t.Context())
	set = seriesSet{}
	set.addOpponent("late", "", func(context.Context) (float64, error) { cancel(); return 0, ctx.Err() })
	_, err = set.runAlternating(ctx, 4)
	require.ErrorIs(t, err, context.Canceled, "an interrupt is no failure of the opponent")
}
