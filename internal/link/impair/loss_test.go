package impair

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var here = netip.MustParseAddrPort("10.0.0.1:4791")

func source(seed uint64) random { return newRandom(seed, here, "test") }

// TestExactCounts counts events of fixed seeds. The counts may change only with the random source.
// The column beside them has the expected values.
func TestExactCounts(t *testing.T) {
	const packets = 100_000
	tests := []struct {
		loss    string
		lost    int
		bursts  int
		longest int
		share   float64 // lost in the long run, by the model
	}{
		{"loss 0%", 0, 0, 0, 0},
		{"loss 100%", packets, 1, packets, 1},
		{"loss 1%", 999, 991, 2, 0.01},
		{"loss 50%", 50020, 25042, 15, 0.5},
		{"loss gemodel 1% 10%", 9300, 908, 78, 1. / 11},
		{"loss gemodel 1% 10% 50% 0.1%", 4755, 2639, 13, 0.5/11 + 0.001*10/11},
		{"loss state 1% 50%", 1853, 983, 7, 0.01 / 0.51},
		{"loss state 1% 50% 10% 20% 1%", 2732, 2031, 8, 0.03 / 1.04},
	}
	for _, test := range tests {
		t.Run(test.loss, func(t *testing.T) {
			spec, err := Parse(test.loss)
			require.NoError(t, err)
			process, r := spec.Loss.newProcess(), source(1)
			lost, bursts, longest, run := 0, 0, 0, 0
			for range packets {
				if !process.isLost(&r) {
					run = 0
					continue
				}
				lost++
				if run++; run == 1 {
					bursts++
				}
				longest = max(longest, run)
			}
			require.Equal(t, []int{test.lost, test.bursts, test.longest}, []int{lost, bursts, longest})
			require.InEpsilon(t, 1+test.share, 1+float64(lost)/packets, 0.005)
		})
	}
}

// TestGilbertElliottModel compares with the definition of the model, in probabilities from 0 to 1
// instead of 32-bit thresholds.
func TestGilbertElliottModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		percent := rapid.OneOf(rapid.SampledFrom([]Percent{0, 100}), rapid.Custom(func(t *rapid.T) Percent {
			return Percent(rapid.Float64Range(0, 100).Draw(t, "percent"))
		}))
		model := GEModel{percent.Draw(t, "p"), percent.Draw(t, "r"), percent.Draw(t, "1-h"), percent.Draw(t, "1-k")}
		seed := rapid.Uint64().Draw(t, "seed")
		got, r := model.newProcess(), source(seed)
		draws := source(seed)
		chance := func(p Percent) bool {
			return float64(draws.next())+0.5 < float64(p)/100*math.Pow(2, 32) // + 0.5: thresholds are rounded
		}
		state := "good"
		for i := range 300 {
			var lost bool
			switch state {
			case "good":
				if chance(model.P) {
					state = "bad"
				}
				lost = chance(model.Good)
			case "bad":
				if chance(model.R) {
					state = "good"
				}
				lost = chance(model.Bad)
			}
			require.Equal(t, lost, got.isLost(&r), "packet %d", i)
		}
	})
}

// TestFourStateModel compares with the transition table of the model.
func TestFourStateModel(t *testing.T) {
	model := FourState{P13: 10, P31: 30, P32: 20, P23: 60, P14: 5}
	type to struct {
		state int
		below float64
	}
	transitions := map[int][]to{
		1: {{4, 0.05}, {3, 0.15}, {1, 1}},
		2: {{3, 0.60}, {2, 1}},
		3: {{2, 0.20}, {1, 0.50}, {3, 1}},
		4: {{1, 1}},
	}
	r, draws := source(3), source(3)
	got := model.newProcess()
	state := 1
	visits := map[int]int{}
	for i := range 10_000 {
		u := float64(draws.next()) / (1 << 32)
		for _, next := range transitions[state] {
			if u < next.below {
				state = next.state
				break
			}
		}
		visits[state]++
		require.Equal(t, state == 3 || state == 4, got.isLost(&r), "packet %d", i)
	}
	require.Len(t, visits, 4)
}

// TestCorrelation compares the fixed-point recursion with the formula.
func TestCorrelation(t *testing.T) {
	for _, rho := range []Percent{0, 0.1, 25, 50, 99, 100} {
		r, draws := source(5), source(5)
		c := newCorrelated(rho)
		last := 0.0
		for i := range 1000 {
			last = float64(draws.next())*(1-float64(rho)/100) + last*float64(rho)/100
			require.InDelta(t, last, float64(c.next(&r)), 2+100*float64(rho/100), "rho %v, draw %d", rho, i)
		}
	}
}

func TestDistributions(t *testing.T) {
	const n = 1 << 16
	tests := []struct {
		d            Distribution
		mean, sigma  float64
		least, most  float64
		median, late float64 // quantiles at 50% and 99%
	}{
		{Uniform, 0, 1 / math.Sqrt(3), -1, 1, 0, 0.98},
		{Normal, 0, 1, -4, 4, 0, 2.3263},
		{Pareto, -0.0329, 0.8209, -2. / 3, 4, -0.3201, 4},
		{ParetoNormal, -0.0247, 0.8349, -1.5, 4, -0.2401, 3.5816},
	}
	for _, test := range tests {
		t.Run(test.d.String(), func(t *testing.T) {
			var sum, squares float64
			last := math.Inf(-1)
			for i := range n {
				x := test.d.quantile((float64(i) + 0.5) / n)
				require.GreaterOrEqual(t, x, last, "quantiles rise")
				require.GreaterOrEqual(t, x, test.least)
				require.LessOrEqual(t, x, test.most)
				last = x
				sum += x
				squares += x * x
			}
			require.InDelta(t, test.mean, sum/n, 1e-3)
			require.InDelta(t, test.sigma, math.Sqrt(squares/n-sum*sum/n/n), 1e-3)
			require.InDelta(t, test.median, test.d.quantile(0.5), 1e-3)
			require.InDelta(t, test.late, test.d.quantile(0.99), 1e-3)
		})
	}
	d := Delay{Mean: time.Millisecond, Jitter: 100 * time.Microsecond}
	require.InDelta(t, 900_000, int64(d.spread(0)), 1)
	require.InDelta(t, 1_100_000, int64(d.spread(math.MaxUint32)), 1)
	require.Equal(t, time.Millisecond, d.spread(1<<31))
}

func TestStreams(t *testing.T) {
	seed := rand.Uint64()
	draw := func(r random) (s string) {
		for range 4 {
			s += fmt.Sprint(r.next(), " ")
		}
		return s
	}
	base := draw(newRandom(seed, here, "a"))
	require.Equal(t, base, draw(newRandom(seed, here, "a")))
	require.NotEqual(t, base, draw(newRandom(seed+1, here, "a")))
	require.NotEqual(t, base, draw(newRandom(seed, here, "b")))
	require.NotEqual(t, base, draw(newRandom(seed, netip.MustParseAddrPort("10.0.0.2:4791"), "a")))
}
