package report

import (
	"fmt"
	"image/color"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

// panelsOf returns the series of each panel of rows "series/baseline=figure" at a place.
func panelsOf(places int, rows ...string) (drawn []string, all []*panel) {
	var list []bench.Row
	for x := range places {
		for _, text := range rows {
			var y float64
			series, figure, _ := strings.Cut(text, "=")
			series, baseline, compared := strings.Cut(series, "/")
			fmt.Sscan(figure, &y)
			r := bench.Row{Series: series, X: float64(x + 1), XUnit: "B", Y: y, YUnit: "us"}
			if compared {
				r.Against = &bench.Against{Baseline: baseline, Ratio: 1}
			}
			list = append(list, r)
		}
	}
	for _, g := range groupRows(list) {
		for _, p := range g.panels() {
			drawn, all = append(drawn, strings.Join(p.series, " ")), append(all, p)
		}
	}
	return drawn, all
}

// Series stand with their baseline, and no chart has more than can be told apart.
func TestPanels(t *testing.T) {
	many := []string{"udp=1"}
	for i := range 13 {
		many = append(many, fmt.Sprintf("s%d/udp=1", i))
	}
	for _, c := range []struct {
		name string
		rows []string
		want []string
	}{
		{"one", []string{"udp=1", "rc/udp=2"}, []string{"udp rc"}},
		{"far apart", []string{"udp=1", "rc/udp=2", "block=20", "rc-event/block=30"}, []string{"udp rc", "block rc-event"}},
		{"near", []string{"rc-lossless=1", "rc/rc-lossless=2", "ud-lossless=2", "ud/ud-lossless=3"}, []string{"rc-lossless rc ud-lossless ud"}},
		{"two baselines", []string{"rc-a=1", "rc-b/rc-a=2", "rc-c/rc-a=2", "rc-d=2", "rc-e/rc-d=3"}, []string{"rc-a rc-b rc-c rc-d rc-e"}},
		{"no baselines", []string{"a=1", "b=100", "c=1", "d=1", "e=1", "f=1", "g=1", "h=1"}, []string{"a b c d", "e f g h"}},
		{"many", many, []string{"udp s0 s1 s2 s3 s4", "udp s5 s6 s7 s8 s9", "udp s10 s11 s12"}},
		{"a baseline that is not there", []string{"rc/udp=1"}, []string{"rc"}},
	} {
		for places := 1; places <= 2; places++ {
			drawn, all := panelsOf(places, c.rows...)
			require.Equal(t, c.want, drawn, c.name)
			for _, p := range all {
				require.LessOrEqual(t, len(p.series), 7)
				require.Equal(t, places == 1, p.isBars())
				colors := map[color.RGBA]bool{}
				for _, s := range p.series {
					colors[p.seriesColors()[s]] = true
				}
				require.Len(t, colors, len(p.series), "colours tell series apart: %v", p.series)
				require.NotEmpty(t, p.chartCaption(nil))
			}
		}
	}
}

// Baselines are grey, and each other series has a hue of its own.
func TestColors(t *testing.T) {
	_, all := panelsOf(1, "udp=1", "rc-write/udp=2", "rc-read/udp=2", "ud-send/udp=2")
	require.Equal(t, map[string]color.RGBA{"udp": baselineColor, "rc-write": palette[0], "rc-read": palette[1], "ud-send": palette[2]}, all[0].seriesColors())
}

// The point of the paper is in the chart of its series, and the caption names it.
func TestPaperInChart(t *testing.T) {
	res := &bench.Result{
		Experiment: &bench.Experiment{Claims: []bench.Statement{{
			Number: 0.25, Compare: bench.Ratio{Of: []string{"rc"}, Over: []string{"tcp"}, Unit: "us", At: bench.Everywhere("B"), Limit: bench.AtMost(0.25)},
		}}},
		Rows: []bench.Row{
			{Series: "tcp", X: 8, XUnit: "B", Y: 20, YUnit: "us"}, {Series: "rc", X: 8, XUnit: "B", Y: 10, YUnit: "us", Rounds: []float64{9, 10, 12}},
			{Series: "tcp", X: 64, XUnit: "B", Y: 40, YUnit: "us"}, {Series: "rc", X: 64, XUnit: "B", Y: 30, YUnit: "us"},
			{Series: "rc", X: 64, XUnit: "B", Y: 30, YUnit: "MB/s"},
		},
	}
	all := panelsOfResult(res)
	require.Len(t, all, 2)
	require.Len(t, all[0].paper, 2)
	require.Empty(t, all[1].paper)
	require.Equal(t, "rc changes most: 10.0 us at 8 B, 30.0 us at 64 B. At 64 B rc is 0.75 times tcp, in the paper 0.25.", all[0].chartCaption(nil))
	low, high, ok := all[0].errorRange(res.Rows[1])
	require.Equal(t, []any{9.0, 12.0, true}, []any{low, high, ok}, "of the rounds")
	svg, err := SVG(res)
	require.NoError(t, err)
	require.Contains(t, texts(t, svg), paperName)
	res.Rows = res.Rows[:2]
	require.Equal(t, "Range: 10.0 us (rc) to 20.0 us (tcp). At 8 B rc is 0.5 times tcp, in the paper 0.25.", panelsOfResult(res)[0].chartCaption(nil))
	_, err = SVG(res)
	require.NoError(t, err)
	res.Rows = []bench.Row{{Series: "a", X: 0, XUnit: "n", Y: 1, YUnit: "us"}, {Series: "b", X: 9, XUnit: "n", Y: 2, YUnit: "us"}}
	require.Equal(t, "Range: 1.00 us (a at 0 n) to 2.00 us (b at 9 n).", panelsOfResult(res)[0].chartCaption(nil))
}

func TestFormatTick(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.05: "0.05", 999: "999", 1000: "1k", 2.5e6: "2.5M", 1e10: "10G", -1500: "-1.5k"} {
		require.Equal(t, want, formatTick(v))
	}
}

// The caption is a statement that rests on figures of the chart: a refuted one before one that holds.
func TestCaption(t *testing.T) {
	_, all := panelsOf(2, "udp=1", "rc-write/udp=2")
	p := all[0]
	shown, _ := p.findRow("rc-write", p.xs[0])
	other := shown
	other.Series = "rc-read"
	elsewhere := shown
	elsewhere.YUnit = "MB/s"
	of := func(word bench.Word, sentence string, r bench.Row) bench.Outcome {
		return bench.Outcome{Word: word, Sentence: sentence, Checks: []bench.Check{{Rows: []bench.Row{r}}}}
	}
	for _, c := range []struct {
		outcomes []bench.Outcome
		want     string
	}{
		{nil, "No series changes from its first point to its last."},
		{[]bench.Outcome{of(bench.Refuted, "One.", other), of(bench.Refuted, "Two.", elsewhere)}, "No series changes from its first point to its last."},
		{[]bench.Outcome{of(bench.NotJudged, "One.", shown)}, "Not judged: One."},
		{[]bench.Outcome{of(bench.NotJudged, "One.", shown), of(bench.Beyond, "Two.", shown), of(bench.Holds, "Three.", shown)}, "As in the paper: Two."},
		{[]bench.Outcome{of(bench.Holds, "One.", shown), of(bench.Refuted, "Two.", other)}, "One."},
		{[]bench.Outcome{of(bench.Holds, "One.", shown), of(bench.Refuted, "Two.", shown)}, "Refuted here: Two."},
	} {
		require.Equal(t, c.want, p.chartCaption(c.outcomes))
	}
}

// TestLogAxis: figures of which the smallest would lie on zero have a logarithmic axis with labels between powers of
// ten.
func TestLogAxis(t *testing.T) {
	row := func(series string, x, y float64) bench.Row {
		return bench.Row{Series: series, X: x, XUnit: "B", Y: y, YUnit: "us"}
	}
	for most, log := range map[float64]bool{4: false, 30: true, 1e5: true} {
		p := panelsOfResult(&bench.Result{Rows: []bench.Row{row("a", 1, 1), row("a", 2, 2), row("b", 1, most), row("b", 2, most)}})[0]
		chart, _, err := p.newPlot()
		require.NoError(t, err)
		_, isLog := chart.Y.Scale.(plot.LogScale)
		require.Equal(t, log, isLog, "1 to %v us", most)
	}
	labels := func(from, to float64) (list []string) {
		for _, tick := range (logTicks{}).Ticks(from, to) {
			if tick.Label != "" {
				list = append(list, tick.Label)
			}
		}
		return list
	}
	require.Equal(t, []string{"1", "2", "5", "10", "20"}, labels(0.9, 31))
	require.Equal(t, []string{"1", "10", "100", "1k", "10k"}, labels(1, 5e4))
}

func TestSentence(t *testing.T) {
	_, all := panelsOf(1, "udp=1", "rc-write/udp=2", "rc-read/udp=3")
	require.Equal(t, "Range: 2.00 us (rc-write) to 3.00 us (rc-read); baseline 1.00 us (udp).", all[0].chartCaption(nil))
	_, all = panelsOf(1, "udp=1", "rc-write/udp=2")
	require.Equal(t, "rc-write: 2.00 us; baseline 1.00 us (udp).", all[0].chartCaption(nil))
	_, all = panelsOf(2, "udp=1", "rc-write/udp=2")
	require.Equal(t, "No series changes from its first point to its last.", all[0].chartCaption(nil))
}
