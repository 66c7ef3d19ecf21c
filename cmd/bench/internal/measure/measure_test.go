package measure

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSummarize(t *testing.T) {
	require.Zero(t, Summarize(nil))

	var v []float64
	for i := 200; i > 0; i-- {
		v = append(v, float64(i))
	}
	require.Equal(t, Stats{N: 200, P50: 100.5, P99: 198, Min: 1, Max: 200}, Summarize(v))
	require.Equal(t, 200.0, v[0], "the sample is left as it was")
	require.Equal(t, Stats{N: 1, P50: 7, P99: 7, Min: 7, Max: 7}, Summarize([]float64{7}))
}

func TestMedian(t *testing.T) {
	require.True(t, math.IsNaN(Median(nil)))
	require.Equal(t, 2.0, Median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, Median([]float64{4, 1, 3, 2}))
}

// A slow period that covers whole pairs affects the ratio of sums, but not the median of the
// pairwise ratios.
func TestMedianRatioCancelsDrift(t *testing.T) {
	baseline := []float64{10, 10, 2, 2, 10}
	subject := []float64{5, 5, 1, 1, 5}
	require.Equal(t, 0.5, MedianRatio(subject, baseline))
	require.True(t, math.IsNaN(MedianRatio(nil, baseline)))
}

func TestAlternateTakesTurns(t *testing.T) {
	const n, turns = 4, 100
	var order []int
	round := func(id int) Round {
		return func(context.Context) (float64, error) {
			order = append(order, id)
			return float64(1000*id + len(order)), nil
		}
	}
	v, err := Alternate(t.Context(), turns, round(0), round(1), round(2), round(3))
	require.NoError(t, err)
	behind := map[[2]int]int{}
	for turn := range turns {
		now := order[n*turn:][:n]
		require.ElementsMatch(t, []int{0, 1, 2, 3}, now)
		if turn%2 == 1 {
			before := slices.Clone(order[n*(turn-1):][:n])
			slices.Reverse(before)
			require.Equal(t, before, now)
		}
		for k, id := range now {
			require.InDelta(t, 1000*id+n*turn+k+1, v[id][turn], 0)
			if k > 0 {
				behind[[2]int{now[k-1], id}]++
			}
		}
	}
	require.Len(t, behind, n*(n-1), "each runs behind each other one")
	for pair, times := range behind {
		require.Greater(t, times, turns*(n-1)/(n*(n-1))/2, pair)
	}
	first := slices.Clone(order)
	order = nil
	_, err = Alternate(t.Context(), turns, round(0), round(1), round(2), round(3))
	require.NoError(t, err)
	require.Equal(t, first, order, "the same in each call")
}

// TestAlternateFor: the first iteration is complete, and none begins after the limit.
func TestAlternateFor(t *testing.T) {
	calls := 0
	count := func(context.Context) (float64, error) { calls++; return 1, nil }
	v, err := AlternateFor(t.Context(), 0, 5, count, count)
	require.NoError(t, err)
	require.Equal(t, [][]float64{{1}, {1}}, v)
	v, err = AlternateFor(t.Context(), time.Hour, 5, count, count)
	require.NoError(t, err)
	require.Len(t, v[1], 5)
	require.Equal(t, 12, calls)
}

func TestAlternateStops(t *testing.T) {
	bad := errors.New("no round")
	fail := func(context.Context) (float64, error) { return 0, bad }
	_, err := Alternate(t.Context(), 3, fail)
	require.ErrorIs(t, err, bad)

	stopped := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	_, err = Alternate(ctx, 3, fail)
	require.ErrorIs(t, err, stopped)
}

func TestLatencyTravels(t *testing.T) {
	a, b := NewLatency(), NewLatency()
	for range 99 {
		a.Record(2 * time.Microsecond)
	}
	b.Record(50 * time.Microsecond)

	wire, err := json.Marshal(b)
	require.NoError(t, err)
	var got Latency
	require.NoError(t, json.Unmarshal(wire, &got))
	a.Merge(&got)

	s := a.Stats()
	require.EqualValues(t, 100, s.N)
	require.InEpsilon(t, 2, s.Min, 0.002)
	require.InEpsilon(t, 2, s.P50, 0.002)
	require.InEpsilon(t, 2, s.P99, 0.002)
	require.InEpsilon(t, 50, s.Max, 0.002)
	require.InEpsilon(t, 2.48, a.Mean(), 0.002)
	require.Zero(t, NewLatency().Mean())
	require.Error(t, json.Unmarshal([]byte(`"junk"`), &got))
}

func TestLatencyClamps(t *testing.T) {
	l := NewLatency()
	l.Record(-time.Second)
	l.Record(time.Hour)
	s := l.Stats()
	require.EqualValues(t, 2, s.N)
	require.Equal(t, 0.001, s.Min)
	require.InEpsilon(t, 60e6, s.Max, 0.002)
	require.Zero(t, testing.AllocsPerRun(100, func() { l.Record(time.Millisecond) }))
}

func TestRates(t *testing.T) {
	require.Equal(t, 2.0, MBps(1e6, 500*time.Millisecond))
	require.Zero(t, PerSecond(1, 0))
	require.Equal(t, 0.5, Micros(500))
}
