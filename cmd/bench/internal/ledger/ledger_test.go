package ledger_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/env"
	_ "github.com/softrnic/softrnic/cmd/bench/internal/experiments"
	"github.com/softrnic/softrnic/cmd/bench/internal/ledger"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

const root = "../../../.."

// TestPageIsCurrent: the page is that of today's statements and of the recorded figures.
func TestPageIsCurrent(t *testing.T) {
	runs, err := ledger.Recorded(&bench.Default)
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, ledger.PagePath))
	require.NoError(t, err)
	require.Equal(t, string(ledger.Page(&bench.Default, runs)), string(page), "run `go run ./cmd/bench record` in the root")
	for line := range strings.Lines(string(page)) {
		require.LessOrEqual(t, len([]rune(line)), 140, line)
	}
	for _, e := range bench.Default.All() {
		require.Contains(t, string(page), "`"+e.Name+"`\n")
	}
}

// measured returns a registry with one experiment, and its result.
func measured(t *testing.T) (*bench.Registry, report.Saved) {
	t.Helper()
	var g bench.Registry
	g.Register(&bench.Experiment{
		Name: "mpi-latency", Source: "IWARP fig. 4a", Axes: []bench.Axis{{Name: "size", Unit: measure.Bytes}},
		Claims: []bench.Statement{{
			Sentence: "RDMA takes a quarter of the time.", Paper: "75 % below", Because: "both poll",
			Compare: bench.Ratio{Of: []string{"rdma"}, Over: []string{"tcp"}, Unit: measure.Microseconds, At: bench.At(8, measure.Bytes), Limit: bench.AtMost(0.25)},
		}},
		Run: func(_ context.Context, r *bench.Run) error {
			r.EmitAgainst(bench.Point{X: 8, XUnit: measure.Bytes, YUnit: measure.Microseconds},
				bench.Sample{Series: "tcp", Figures: []float64{10.000001, 10.1, 10.2}}, bench.Sample{Series: "rdma", Figures: []float64{9.5, 9.6, 9.7}})
			r.EmitAbsent("openmpi", "not installed")
			return nil
		},
	})
	res, err := bench.Execute(t.Context(), g.All()[0], bench.Options{})
	require.NoError(t, err)
	return &g, report.Saved{Result: res, Machine: env.Fingerprint{{Name: "revision", Value: "abc"}, {Name: "date", Value: "2026-01-02"}}}
}

// TestRecord: the recorded figures give the outcomes of the run, and the page has them.
func TestRecord(t *testing.T) {
	g, run := measured(t)
	from, to := t.TempDir(), t.TempDir()
	require.NoError(t, report.Save(from, run.Machine, run.Result))
	_, err := ledger.Record(to, from, g)
	require.ErrorContains(t, err, "not the root of the repository")
	require.NoError(t, os.MkdirAll(filepath.Join(to, ledger.RecordedPath), 0o777))
	require.NoError(t, os.MkdirAll(filepath.Join(to, "docs"), 0o777))
	_, err = ledger.Record(to, t.TempDir(), g)
	require.ErrorContains(t, err, "no results of experiments")

	for text, wrong := range map[string]report.Saved{
		"a quick run":                          {Result: &bench.Result{Experiment: run.Experiment, Quick: true, Rows: run.Rows}, Machine: run.Machine},
		`program of commit ""`:                 {Result: run.Result},
		`program of commit "abc with changes"`: {Result: run.Result, Machine: env.Fingerprint{{Name: "revision", Value: "abc with changes"}}},
	} {
		dir := t.TempDir()
		require.NoError(t, report.Save(dir, wrong.Machine, wrong.Result))
		_, err = ledger.Record(to, dir, g)
		require.ErrorContains(t, err, text)
	}

	names, err := ledger.Record(to, from, g)
	require.NoError(t, err)
	require.Equal(t, []string{"mpi-latency"}, names)
	runs, err := ledger.Load(os.DirFS(filepath.Join(to, ledger.RecordedPath)), g)
	require.NoError(t, err)
	back := runs["mpi-latency"]
	written := func(outcomes []bench.Outcome) string {
		text, err := json.Marshal(outcomes)
		require.NoError(t, err)
		return string(text)
	}
	require.JSONEq(t, written(run.Outcomes), written(back.Outcomes))
	require.Equal(t, []float64{10, 10.1, 10.2}, back.Rows[0].Rounds, "rounded")
	require.Nil(t, back.Rows[0].Stats)
	require.Equal(t, "not installed", back.Rows[2].Absent)

	page, err := os.ReadFile(filepath.Join(to, ledger.PagePath))
	require.NoError(t, err)
	require.Contains(t, string(page), `| IWARP | 1 refuted |
`)
	require.Contains(t, string(page), "### Fig. 4a: `mpi-latency`\n\nRecorded in a full run on 2026-01-02, commit abc.\n\n"+
		"- RDMA takes a quarter of the time. Paper: 75 % below. **refuted**: rdma over tcp at 8 B 0.95 (at most 0.25); both poll.\n")
	_, err = ledger.Record(to, "", g) // the page alone
	require.NoError(t, err)
}
