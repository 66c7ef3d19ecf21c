package bench

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// row returns a row of a time over a size, whose figure is the median of the rounds.
func row(series string, x float64, rounds ...float64) Row {
	return Row{Series: series, X: x, XUnit: measure.Bytes, Y: measure.Median(rounds), YUnit: measure.Microseconds, Rounds: rounds}
}

// overTCP is the ratio of the comparisons below.
func overTCP(at Points, most float64) Ratio {
	return Ratio{Of: []string{"rdma"}, Over: []string{"tcp", "openmpi"}, Unit: measure.Microseconds, At: at, Limit: AtMost(most)}
}

func TestOutcomes(t *testing.T) {
	paper := Statement{Sentence: "RDMA takes half as long.", Paper: "50 %", Number: 0.5, Compare: overTCP(At(8, measure.Bytes), 0.5), Because: "both poll"}
	own := paper
	own.Source = Adapter
	absent := Row{Series: "openmpi", Absent: "not installed (Debian: openmpi-bin)"}
	for want, c := range map[string]struct {
		rows  []Row
		own   bool
		quick bool
	}{
		"reproduced: rdma over tcp at 8 B 0.40 (at most 0.5)": {rows: []Row{row("rdma", 8, 4), row("tcp", 8, 10), row("openmpi", 8, 12)}},
		"holds: rdma over tcp at 8 B 0.40 (at most 0.5)":      {rows: []Row{row("rdma", 8, 4), row("tcp", 8, 10), row("openmpi", 8, 12)}, own: true},
		"beyond: rdma over tcp at 8 B 0.10 (at most 0.5)":     {rows: []Row{row("rdma", 8, 1), row("tcp", 8, 10), row("openmpi", 8, 12)}},
		"refuted because rdma over openmpi at 8 B 0.89 (at most 0.5): both poll": {
			rows: []Row{row("rdma", 8, 4), row("tcp", 8, 10), row("openmpi", 8, 4.5)}},
		"refuted because rdma over tcp at 8 B 0.80 (at most 0.5): both poll": { // one figure refutes
			rows: []Row{row("rdma", 8, 8), row("tcp", 8, 10), absent}},
		"not judged (openmpi: not installed (Debian: openmpi-bin)); measured: rdma over tcp at 8 B 0.40 (at most 0.5)": {
			rows: []Row{row("rdma", 8, 4), row("tcp", 8, 10), absent}},
		"not reached (openmpi in us was not measured at 8 B); measured: rdma over tcp at 8 B 0.40 (at most 0.5)": {
			rows: []Row{row("rdma", 8, 4), row("tcp", 8, 10)}},
		"not reached (rdma in us was not measured at 8 B)": {
			rows: []Row{row("rdma", 64, 4), row("tcp", 64, 10)}},
		"not judged (a quick run does not decide near the limit); measured: rdma over tcp at 8 B 0.45 (at most 0.5)": {
			rows: []Row{row("rdma", 8, 4.5), row("tcp", 8, 10), row("openmpi", 8, 12)}, quick: true},
		"not judged (a quick run does not decide near the limit); measured: rdma over tcp at 8 B 0.55 (at most 0.5)": {
			rows: []Row{row("rdma", 8, 5.5), row("tcp", 8, 10), row("openmpi", 8, 12)}, quick: true},
		"refuted because rdma over tcp at 8 B 0.70 (at most 0.5): both poll": {
			rows: []Row{row("rdma", 8, 7), row("tcp", 8, 10), row("openmpi", 8, 12)}, quick: true},
		"refuted because rdma over tcp at 8 B 0.504 (at most 0.5): both poll": {
			rows: []Row{row("rdma", 8, 5.04), row("tcp", 8, 10), row("openmpi", 8, 12)}},
	} {
		s := paper
		if c.own {
			s = own
		}
		e := Experiment{Name: "x", Source: "IWARP fig. 4a", Claims: []Statement{s}}
		require.Equal(t, want, e.Judge(c.rows, c.quick, nil)[0].String())
	}
}

// Every comparison is refuted by a figure beyond its limit, at each of its points.
func TestComparisons(t *testing.T) {
	rows := []Row{row("a", 1, 10), row("a", 2, 20), row("a", 4, 30), row("b", 1, 10), row("b", 2, 19), row("b", 4, 15)}
	all := Everywhere(measure.Bytes)
	a, b, us := []string{"a"}, []string{"b"}, measure.Microseconds
	for want, c := range map[string]Comparison{
		"reproduced: a over b at 4 B 2.00 (at most 2)":                                                        Ratio{Of: a, Over: b, Unit: us, At: all, Limit: AtMost(2)},
		"refuted because a over b at 4 B 2.00 (at most 1.5): the cause is not measured":                       Ratio{Of: a, Over: b, Unit: us, At: all, Limit: AtMost(1.5)},
		"refuted because a over b at 1 B 1.00 (at least 1.01): the cause is not measured":                     Ratio{Of: a, Over: b, Unit: us, At: Between(1, 2, measure.Bytes), Limit: AtLeast(1.01)},
		"reproduced: peak of a (at 4 B) over that of b (at 2 B) 1.58 (at least 1)":                            Ratio{Of: a, Over: b, Unit: us, At: all, Peak: true, Limit: AtLeast(1)},
		"refuted because a at 4 B, in us 30.0 (at most 20): the cause is not measured":                        Value{Of: a, Unit: us, At: all, Limit: AtMost(20)},
		"refuted because a minus b at 4 B, in us 15.0 (at most 0): the cause is not measured":                 Value{Of: a, Minus: "b", Unit: us, At: all, Limit: AtMost(0)},
		"refuted because larger over smaller of b and a at 4 B 2.00 (at most 1.5): the cause is not measured": Alike{Series: []string{"b", "a"}, Unit: us, At: all, Limit: AtMost(1.5)},
		"refuted because a at 4 B over that at 1 B 3.00 (at most 2): the cause is not measured":               Growth{Of: a, Unit: us, At: all, Limit: AtMost(2)},
		"refuted because b at 4 B over that at 2 B 0.79 (at least 1): the cause is not measured":              Growth{Of: b, Unit: us, At: all, Step: true, Limit: AtLeast(1)},
		"reproduced: a over b at 4 B over that at 1 B 2.00 (at least 2)":                                      Growth{Of: a, Over: "b", Unit: us, At: all, Limit: AtLeast(2)},
		"refuted because b at 2 B over that at 1 B 1.90 (at most 1.1): the cause is not measured":             Flat{Of: b, Unit: us, At: all, Limit: AtMost(1.1)},
		"refuted because b at 1 B, in us 10.0 (at most 9): the cause is not measured":                         All{Value{Of: a, Unit: us, At: all, Limit: AtMost(30)}, Value{Of: b, Unit: us, At: At(1, measure.Bytes), Limit: AtMost(9)}},
		"refuted because b at 2 B, in us 19.0 (8 to 9): the cause is not measured":                            Value{Of: b, Unit: us, At: all, Limit: Within(8, 9)},
		"not reached (a was measured at one point only)":                                                      Growth{Of: a, Unit: us, At: At(2, measure.Bytes), Limit: AtMost(2)},
		"reproduced: a at 4 B over that at 1 B 3.00 (at least 3)":                                             Growth{Of: a, Unit: us, At: Between(1, 4, measure.Bytes), Ends: true, Limit: AtLeast(3)},
		"not reached (a in us was not measured at 0 B)":                                                       Growth{Of: a, Unit: us, At: Between(0, 4, measure.Bytes), Ends: true, Limit: AtLeast(3)},
		"not reached (a in us was not measured at 8 B)":                                                       Growth{Of: a, Unit: us, At: Between(1, 8, measure.Bytes), Ends: true, Step: true, Limit: AtLeast(1)},
		"not reached (b was measured at one point only)":                                                      Flat{Of: b, Unit: us, At: At(2, measure.Bytes), Limit: AtMost(2)},
		"not reached (a in ms was not measured from 3 B)":                                                     Value{Of: a, Unit: "ms", At: From(3, measure.Bytes), Limit: AtMost(20)},
	} {
		s := Statement{Sentence: "It is so.", Compare: c}
		require.Equal(t, want, s.judgeRows(rows, false).String(), c.String())
	}
}

// A cause that rests on figures is printed only if the run has them, and they hold without noise.
func TestEvidence(t *testing.T) {
	us, all := measure.Microseconds, Everywhere(measure.Bytes)
	s := Statement{Sentence: "It is so.", Compare: Value{Of: []string{"a"}, Unit: us, At: all, Limit: AtMost(5)}, Because: "b is slow",
		Evidence: Value{Of: []string{"b"}, Unit: us, At: all, Limit: AtLeast(100)}}
	noisy := row("b", 1, 90)
	noisy.Rounds = []float64{50, 90, 200}
	for _, c := range []struct{ b, want string }{
		{"slow", "refuted because a at 1 B, in us 10.0 (at most 5): b is slow"},
		{"fast", "refuted because a at 1 B, in us 10.0 (at most 5): the cause is not measured"},
		{"noisy", "refuted because a at 1 B, in us 10.0 (at most 5): the cause is not measured"},
		{"not measured", "refuted because a at 1 B, in us 10.0 (at most 5): the cause is not measured"},
	} {
		rows := []Row{row("a", 1, 10)}
		if b, ok := map[string]Row{"slow": row("b", 1, 100), "fast": row("b", 1, 99), "noisy": noisy}[c.b]; ok {
			rows = append(rows, b)
		}
		require.Equal(t, c.want, s.judgeRows(rows, false).String(), c.b)
	}
}

// The text of a ratio has the unit of its figures, unless they are times, of which less is better.
func TestRatioUnits(t *testing.T) {
	rows := []Row{row("a", 1, 10), row("a", 2, 20), row("b", 1, 10), row("b", 2, 16)}
	for i := range rows {
		rows[i].YUnit = measure.MegabytesPerSec
	}
	all := Everywhere(measure.Bytes)
	a, b, mbps := []string{"a"}, []string{"b"}, measure.MegabytesPerSec
	for want, c := range map[string]Comparison{
		"reproduced: a over b at 2 B 1.25 in MB/s (at most 2)":                                                           Ratio{Of: a, Over: b, Unit: mbps, At: all, Limit: AtMost(2)},
		"refuted because peak of a (at 2 B) over that of b (at 2 B) 1.25 in MB/s (at most 1): the cause is not measured": Ratio{Of: a, Over: b, Unit: mbps, At: all, Peak: true, Limit: AtMost(1)},
		"reproduced: a at 2 B, in MB/s 20.0 (at most 20)":                                                                Value{Of: a, Unit: mbps, At: all, Limit: AtMost(20)},
		"reproduced: larger over smaller of a and b at 2 B 1.25 in MB/s (at most 1.5)":                                   Alike{Series: []string{"a", "b"}, Unit: mbps, At: all, Limit: AtMost(1.5)},
		"reproduced: a at 2 B over that at 1 B 2.00 in MB/s (1.9 to 2.1)":                                                Growth{Of: a, Unit: mbps, At: all, Limit: Within(1.9, 2.1)},
		"refuted because b at 2 B over that at 1 B 1.60 in MB/s (at most 1.1): the cause is not measured":                Flat{Of: b, Unit: mbps, At: all, Limit: AtMost(1.1)},
	} {
		s := Statement{Sentence: "It is so.", Compare: c}
		require.Equal(t, want, s.judgeRows(rows, false).String(), c.String())
	}
}

// A comparator that is slow in half of its rounds, or far off its own best, decides nothing.
func TestNoise(t *testing.T) {
	ctx := context.Background()
	turn := 0
	baseline := func(context.Context) (float64, error) { // slow in half of the rounds
		turn++
		return []float64{10, 25}[turn%2], nil
	}
	subject := func(context.Context) (float64, error) { return 4, nil }
	for _, n := range []int{3, 4, 7, 9} {
		v, err := measure.Alternate(ctx, n, baseline, subject)
		require.NoError(t, err)
		rows := []Row{row("tcp", 8, v[0]...), row("openmpi", 8, 12), row("rdma", 8, v[1]...)}
		for _, most := range []float64{0.5, 0.1} { // which would hold, and which would not
			s := Statement{Sentence: "RDMA is faster.", Compare: Ratio{Of: []string{"rdma"}, Over: []string{"tcp"}, Unit: measure.Microseconds, At: At(8, measure.Bytes), Limit: AtMost(most)}}
			o := s.judgeRows(rows, false)
			require.Equal(t, NotJudged, o.Word)
			require.Equal(t, "noise: the rounds of tcp at 8 B spread 2.50 > 1.5", o.Reason)
			require.False(t, o.IsPass())
		}
	}

	// A noisy subject decides if all of its rounds are on one side of the limit.
	const spread = "not judged (noise: the rounds of rdma at 8 B spread 3.00 > 1.5); measured: "
	ratio := Ratio{Of: []string{"rdma"}, Over: []string{"tcp"}, Unit: measure.Microseconds, At: At(8, measure.Bytes), Limit: AtMost(0.5)}
	peak, minus := ratio, Value{Of: ratio.Of, Minus: "tcp", Unit: ratio.Unit, At: ratio.At, Limit: AtMost(-5)}
	peak.Peak = true
	growth := Growth{Of: ratio.Of, Over: "tcp", Unit: ratio.Unit, At: From(4, measure.Bytes), Limit: AtMost(0.5)}
	for _, c := range []struct {
		compare Comparison
		subject []float64
		want    string
	}{
		{ratio, []float64{3, 9, 9}, spread + "rdma over tcp at 8 B 0.90 (at most 0.5)"},
		{ratio, []float64{3, 3, 9}, spread + "rdma over tcp at 8 B 0.30 (at most 0.5)"},
		{ratio, []float64{6, 9, 18}, "refuted because rdma over tcp at 8 B 0.90 (at most 0.5): the cause is not measured"},
		{ratio, []float64{1, 2, 3}, "reproduced: rdma over tcp at 8 B 0.20 (at most 0.5)"},
		{ratio, []float64{4, 4.2, 5.5}, "reproduced: rdma over tcp at 8 B 0.42 (at most 0.5)"},
		{peak, []float64{3, 9, 9}, spread + "peak of rdma (at 8 B) over that of tcp (at 8 B) 0.90 (at most 0.5)"},
		{peak, []float64{3, 3, 9}, spread + "peak of rdma (at 8 B) over that of tcp (at 8 B) 0.30 (at most 0.5)"},
		{peak, []float64{1, 2, 3}, "reproduced: peak of rdma (at 8 B) over that of tcp (at 8 B) 0.20 (at most 0.5)"},
		{minus, []float64{3, 9, 9}, spread + "rdma minus tcp at 8 B, in us -1.00 (at most -5)"},
		{minus, []float64{3, 3, 9}, spread + "rdma minus tcp at 8 B, in us -7.00 (at most -5)"},
		{minus, []float64{1, 2, 3}, "reproduced: rdma minus tcp at 8 B, in us -8.00 (at most -5)"},
		{growth, []float64{3, 9, 9}, spread + "rdma over tcp at 8 B over that at 4 B 0.90 (at most 0.5)"},
		{growth, []float64{3, 3, 9}, spread + "rdma over tcp at 8 B over that at 4 B 0.30 (at most 0.5)"},
		{growth, []float64{1, 2, 3}, "reproduced: rdma over tcp at 8 B over that at 4 B 0.20 (at most 0.5)"},
	} {
		rows := []Row{row("rdma", 8, c.subject...), row("tcp", 8, 10, 10, 10)}
		if _, ok := c.compare.(Growth); ok {
			rows = append(rows, row("rdma", 4, 10, 10, 10), row("tcp", 4, 10, 10, 10))
		}
		s := Statement{Sentence: "RDMA is faster.", Compare: c.compare}
		require.Equal(t, c.want, s.judgeRows(rows, false).String())
	}

	slight := row("tcp", 8, 10, 15.02)
	require.Equal(t, "the rounds of tcp at 8 B spread 1.502 > 1.5", spreadNoise(slight))
	slight = row("tcp", 8, 10, 15.4)
	require.Equal(t, "the rounds of tcp at 8 B spread 1.54 > 1.5", spreadNoise(slight))

	// One slow round of many is no noise.
	quiet := []Row{row("tcp", 8, 10, 10, 11, 10, 90), row("rdma", 8, 4)}
	require.Empty(t, figures(quiet).noiseOf(quiet[0]))
	// All rounds of a point were slow: a longer message took less time.
	slow := []Row{row("tcp", 8, 546), row("tcp", 64, 86), row("tcp", 4096, 90)}
	require.Equal(t, "tcp at 8 B is 6.3 times off its own best of the run (at 64 B)", figures(slow).noiseOf(slow[0]))
	require.Empty(t, figures(slow).noiseOf(slow[1]))
	// One good round of many: the others are off.
	bimodal := row("tcp", 8, 30, 30, 31, 30, 12)
	require.Equal(t, "tcp at 8 B is 2.5 times off its own best of the run (at 8 B)", figures{bimodal}.noiseOf(bimodal))
	streams := []Row{row("tcp", 65536, 5209), row("tcp", 1<<20, 643), row("tcp", 64, 30)}
	for i := range streams {
		streams[i].YUnit = measure.MegabytesPerSec
	}
	require.Equal(t, "tcp at 1 MiB is 8.1 times off its own best of the run (at 64 KiB)", figures(streams).noiseOf(streams[1]))
	require.Empty(t, figures(streams).noiseOf(streams[2]), "short messages have less bandwidth")
}

// A claim about the default of a parameter is not judged with another value.
func TestOtherClaim(t *testing.T) {
	e := sample("x")
	e.Params[0].OfClaim = true
	rows := []Row{row("one", 8, 1)}
	require.Equal(t, Holds, e.Judge(rows, false, nil)[0].Word)
	require.Equal(t, Holds, e.Judge(rows, false, Settings{"size": "64"})[0].Word)
	o := e.Judge(rows, false, Settings{"size": "4K"})[0]
	require.Equal(t, NotJudged, o.Word)
	require.Equal(t, "size=4K, and the claim is about 64", o.Reason)
	require.Equal(t, NotJudged, e.Judge(rows, true, nil)[0].Word, "the quick default differs")
}

func TestVerdict(t *testing.T) {
	of := func(words ...Word) (list []Outcome) {
		for _, w := range words {
			list = append(list, Outcome{Word: w})
		}
		return list
	}
	require.Equal(t, NotJudged, Verdict(nil))
	require.Equal(t, Holds, Verdict(of(Reproduced, Holds, Beyond)))
	require.Equal(t, PartJudged, Verdict(of(NotReached, Beyond)))
	require.Equal(t, PartJudged, Verdict(of(Holds, NotJudged, NotJudged, NotJudged)), "acp-bandwidth")
	require.Equal(t, Refuted, Verdict(of(Reproduced, Refuted)))
	require.Equal(t, NotJudged, Verdict(of(NotReached, NotJudged)))
	require.Equal(t, "2 reproduced, 1 refuted, 1 not judged", Count(of(Refuted, Reproduced, NotJudged, Reproduced)))
}

// A figure that misses its limit by little has enough digits.
func TestLimitFormat(t *testing.T) {
	for _, c := range []struct {
		l      Limit
		figure float64
		want   string
	}{
		{AtMost(1.05), 1.05, "1.05"}, {AtMost(1.05), 1.05019, "1.0502"}, {AtMost(1.05), 1.0509, "1.051"}, {AtLeast(1), 0.9978, "0.998"},
		{AtMost(4096), 4096.4, "4096.4"}, {AtMost(0), 16, "16.0"}, {AtLeast(3), 12.34, "12.3"},
	} {
		require.Equal(t, c.want, c.l.formatFigure(c.figure))
	}
	// The bounds of quotients are rounded, except where a figure is between a bound and the rounded one.
	for want, limit := range map[string]Limit{
		"at least 1.04": AtLeast(1 / 0.96), "at most 0.458": AtMost(0.11 / 0.24), "at most 37700000": AtMost(1.3 * 29e6),
		"at most 123": AtMost(370.0 / 3), "0.333 to 1.125": Within(1.0/3, 1.125), "at most 0": AtMost(0),
	} {
		require.Equal(t, want, limit.String())
	}
	require.Equal(t, "1.46 (at least 1.04)", AtLeast(1/0.96).describeFigure(1.46))
	require.Equal(t, "1.041 (at least 1.0416666666666667)", AtLeast(1/0.96).describeFigure(1.041))
	require.Equal(t, "1.03 (at least 1.04)", AtLeast(1/0.96).describeFigure(1.034))

	require.False(t, AtMost(0).isNear(0.1, QuickBand))
	require.Positive(t, AtMost(0).missBy(1))
	require.Negative(t, AtMost(math.Inf(1)).missBy(1))
}

// TestLeftOut checks that a run at some of the points of a sentence can refute it, and not confirm it.
func TestLeftOut(t *testing.T) {
	ratio := func(at Points) []Statement {
		return []Statement{{Sentence: "a is at most b.", Compare: Value{Of: []string{"a"}, Unit: "us", At: at, Limit: AtMost(2)}}}
	}
	row := func(x, y float64) Row { return Row{Series: "a", X: x, XUnit: "B", Y: y, YUnit: "us"} }
	for name, c := range map[string]struct {
		at    Points
		rows  []Row
		quick bool
		set   Settings
		want  Word
	}{
		"all points":           {Between(8, 64, "B"), []Row{row(8, 1), row(64, 1), row(4096, 1)}, false, nil, Reproduced},
		"a quick run":          {Between(8, 64, "B"), []Row{row(8, 1)}, true, nil, NotJudged},
		"a quick run refutes":  {Between(8, 64, "B"), []Row{row(8, 9)}, true, nil, Refuted},
		"one point":            {At(8, "B"), []Row{row(8, 1)}, true, nil, Reproduced},
		"a parameter":          {From(64, "B"), []Row{row(64, 1)}, false, Settings{"sizes": "64"}, NotJudged},
		"other points left":    {Between(8, 64, "B"), []Row{row(8, 1), row(64, 1)}, false, Settings{"sizes": "8,64"}, Reproduced},
		"more points":          {Everywhere("B"), []Row{row(8, 1), row(16, 1), row(64, 1), row(4096, 1)}, false, Settings{"sizes": "8,16,64,4096"}, Reproduced},
		"a parameter as usual": {Everywhere("B"), []Row{row(8, 1), row(64, 1), row(4096, 1)}, false, Settings{"sizes": "8,64,4KiB"}, Reproduced},
	} {
		e := &Experiment{Name: "x", Source: "RCUD fig. 9", Claims: ratio(c.at), Params: []Param{{Name: "sizes", Kind: Ints, Default: "8,64,4KiB", Quick: "8"}}}
		require.Equal(t, c.want, e.Judge(c.rows, c.quick, c.set)[0].Word, name)
	}
}
