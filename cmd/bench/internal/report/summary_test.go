package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// measured returns a result with the rows of every headline.
func measured() (results []*bench.Result) {
	byName := map[string]*bench.Result{}
	add := func(h headline) {
		res := byName[h.experiment]
		if res == nil {
			res = &bench.Result{Experiment: &bench.Experiment{Name: h.experiment, Source: bench.Adapter}, Verdict: bench.Verdict{Holds: true, Reason: "so"}}
			byName[h.experiment], results = res, append(results, res)
		}
		row := bench.Row{Series: h.series, X: h.x, XUnit: "B", Y: 4321.5, YUnit: h.yUnit, Against: &bench.Against{Baseline: "udp", Ratio: 1.25}}
		row.Stats = &measure.Stats{N: 1000, P99: 12345}
		res.Rows = append(res.Rows, row)
		if h.rival != "" {
			row.Series, row.Y = h.rival, 8643
			res.Rows = append(res.Rows, row)
		}
	}
	for _, h := range latencies {
		h.yUnit = measure.Microseconds
		add(h)
	}
	for _, h := range bandwidths {
		h.yUnit = measure.MegabytesPerSec
		for _, h.x = range bandwidthSizes {
			add(h)
		}
	}
	for _, h := range rates {
		add(h)
	}
	return results
}

// manyFigures returns results of figures of papers in every state.
func manyFigures(n int) (results []*bench.Result) {
	for i := range n {
		res := &bench.Result{Experiment: &bench.Experiment{Name: fmt.Sprintf("some-long-figure-%d", i), Source: "RCUD fig. 6a"}}
		switch i % 4 {
		case 0:
			res.Err = errors.New("failed")
		case 1:
			res.Verdict = bench.Verdict{Reason: "so", Checks: []bench.Check{{Description: "x", Figure: 2, Limit: 1}}}
		case 2:
			res.Verdict = bench.Verdict{Reason: "so", Checks: []bench.Check{{Description: "x", Figure: 1.1, Limit: 1}}}
		case 3:
			res.Verdict = bench.Verdict{Holds: true, Reason: "so", Checks: []bench.Check{{Description: "x", Figure: 0.5, Limit: 1, Holds: true}}}
		}
		results = append(results, res)
	}
	return results
}

// The summary fits on a screen, whatever there is.
func TestSummary(t *testing.T) {
	long := strings.Repeat("softrnic on a machine ", 20)
	notes := []string{long, long, "the end"}
	for name, results := range map[string][]*bench.Result{
		"nothing": nil, "headlines": measured(), "figures": manyFigures(40), "all": append(measured(), manyFigures(40)...),
	} {
		var all []*bench.Experiment
		for _, res := range results {
			all = append(all, res.Experiment)
		}
		text := Summary(long, results, all, notes)
		lines := strings.Split(text, "\n")
		require.LessOrEqual(t, len(lines), 26, name)
		for _, line := range lines {
			require.LessOrEqual(t, len(line), 80, line)
		}
		require.Equal(t, "the end", lines[len(lines)-1], "notes are never cut off")
	}
	text := Summary("title", append(measured(), manyFigures(8)...), nil, nil)
	for _, want := range []string{
		"  RDMA write, RC           8 B    4322 us   12345 us   1.25 x UDP",
		"  MPI message              8 B    4322 us   12345 us   0.50 x Open MPI",
		"  RDMA write              4.32 GB/s   1.25 x  4.32 GB/s   1.25 x  UDP",
		"quick: 2 agree, 2 need `bench run`, 2 differ",
		"  failed: some-long-figure-0, some-long-figure-4\n",
		"  differ: some-long-figure-1 (2.00, claim 1.00), some-long-figure-5 (2.00, claim\n    1.00)\n",
		"  need run: some-long-figure-2, some-long-figure-6",
	} {
		require.Contains(t, text, want)
	}
	require.Contains(t, Summary("title", nil, nil, nil), "  barrier of 4 ranks           not measured: bench run imb-barrier\n")
}

func TestWrap(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("123456789 ", 20))
	require.Equal(t, []string{"a b"}, Wrap("a  b", "", "", 1))
	require.Equal(t, []string{strings.Repeat("123456789 ", 7) + "123456789"}, Wrap(long[:79], "", "", 1))
	require.Equal(t, []string{strings.Repeat("123456789 ", 7)[:69] + " ..."}, Wrap(long, "", "", 1))
	require.Len(t, Wrap(long, "", "    ", 9), 3)
}
