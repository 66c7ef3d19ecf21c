package experiments

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// TestVerdictDigits checks that a figure which misses its limit by little is printed with
// enough digits.
func TestVerdictDigits(t *testing.T) {
	for want, say := range map[string]func(j *evaluation){
		"x 1.05 (at most 1.05)":       func(j *evaluation) { j.atMost("x", 1.05, 1.05) },
		"x 1.05 (at least 1.05)":      func(j *evaluation) { j.atLeast("x", 1.0501, 1.05) },
		"NOT x 1.0502 (at most 1.05)": func(j *evaluation) { j.atMost("x", 1.05019, 1.05) },
		"NOT x 1.051 (at most 1.05)":  func(j *evaluation) { j.atMost("x", 1.0509, 1.05) },
		"NOT x 0.998 (at least 1.00)": func(j *evaluation) { j.atLeast("x", 0.9978, 1) },
		"NOT x 1.20 (at most 1.05)":   func(j *evaluation) { j.atMost("x", 1.2, 1.05) },
	} {
		var j evaluation
		say(&j)
		require.Equal(t, want, j.makeVerdict().Reason)
	}
	require.Equal(t, "1.00", formatFigure(1, 1, 2, false), "it had to be more")
}

// requireVerdict compares verdicts without their checks, whose texts are in the reason.
func requireVerdict(t *testing.T, want, v bench.Verdict) {
	t.Helper()
	v.Checks, v.Remarks = nil, nil
	require.Equal(t, want, v)
}

func TestEvaluation(t *testing.T) {
	var j evaluation
	require.False(t, j.makeVerdict().Holds)
	require.Contains(t, j.makeVerdict().Reason, "no figure")
	j.atMost("a", 1.4, 1.4)
	j.atLeast("b", 0.8, 0.8)
	require.Equal(t, bench.Verdict{Holds: true, Reason: "a 1.40 (at most 1.40), b 0.80 (at least 0.80)", Checks: []bench.Check{
		{Description: "a 1.40 (at most 1.40)", Figure: 1.4, Limit: 1.4, Holds: true},
		{Description: "b 0.80 (at least 0.80)", Figure: 0.8, Limit: 0.8, Holds: true},
	}}, j.makeVerdict())
	j.atMost("c", 1.41, 1.4)
	require.False(t, j.makeVerdict().Holds)

	var remarks evaluation
	remarks.addRemark("nobody was %s", "there")
	requireVerdict(t, bench.Verdict{Reason: "no figure of the claim was measured; nobody was there"}, remarks.makeVerdict())
	remarks.atMost("a", 1, 1)
	require.True(t, remarks.makeVerdict().Holds)
	require.Equal(t, "a 1.00 (at most 1.00); nobody was there", remarks.makeVerdict().Reason)
}

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

func TestApplicationVerdict(t *testing.T) {
	good, slow, apart := appRun{run: &run{}, limit: 0.9}, appRun{run: &run{}, limit: 0.9}, appRun{run: &run{}, limit: 0.9}
	for i, size := range []int{100000, 2 << 20} {
		credit := []float64{100 + float64(i)}
		good.addSize(size, []float64{80 + float64(5*i)}, []float64{84}, credit)
		slow.addSize(size, []float64{80 + float64(15*i)}, []float64{80 + float64(15*i)}, credit)
		apart.addSize(size, []float64{60 + float64(10*i)}, []float64{70}, credit)
	}
	for _, v := range []*appRun{&good, &slow, &apart} {
		v.compareModes()
	}
	requireVerdict(t, bench.Verdict{Holds: true, Reason: "sdp-nic over sdp-credit at worst with 2 MiB 0.84 (at most 0.90), " +
		"sdp-rdma over sdp-credit at worst with 97.66 KiB 0.84 (at most 0.90), " +
		"the slower of sdp-nic and sdp-rdma over the other at worst with 97.66 KiB 1.05 (at most 1.10)"}, good.makeVerdict())
	requireVerdict(t, bench.Verdict{Reason: "NOT sdp-nic over sdp-credit at worst with 2 MiB 0.94 (at most 0.90), " +
		"NOT sdp-rdma over sdp-credit at worst with 2 MiB 0.94 (at most 0.90), " +
		"the slower of sdp-nic and sdp-rdma over the other at worst with 97.66 KiB 1.00 (at most 1.10)"}, slow.makeVerdict())
	require.False(t, apart.makeVerdict().Holds)
}
