package report

import (
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

// What Save writes, Load reads.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	saved := result()
	saved.Quick, saved.Set = true, bench.Settings{"sizes": "8"}
	require.NoError(t, Save(dir, machine, saved))
	require.NoError(t, Save(dir, machine, failure()))
	_, err := SavePage(dir, nil)
	require.NoError(t, err)
	var none bench.Registry
	results, err := Load(dir, &none)
	require.NoError(t, err)
	require.Len(t, results, 2)
	require.Equal(t, machine, results[0].Machine)
	require.Equal(t, saved.Rows, results[0].Rows)
	require.Equal(t, saved.Outcomes, results[0].Outcomes, "of an experiment that there is not any more")
	require.Equal(t, saved.Experiment.Claim(), results[0].Experiment.Claim())
	require.Equal(t, saved.Set, results[0].Set)
	require.EqualError(t, results[1].Err, "verbs-y: worker <rank 1> fell over")

	// Files of a run that was cut short, and had no NAME.json, do as well.
	require.NoError(t, os.Remove(filepath.Join(dir, "verbs-x.json")))
	lines, err := os.ReadFile(filepath.Join(dir, "verbs-x.jsonl"))
	require.NoError(t, err)
	rows, _, _ := strings.Cut(string(lines), `{"experiment":"verbs-x","claim"`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "verbs-x.jsonl"), []byte(rows), 0o600))
	results, err = Load(dir, &none)
	require.NoError(t, err)
	require.Equal(t, saved.Rows, results[0].Rows)
	require.ErrorIs(t, results[0].Err, errUnfinished)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "verbs-x.jsonl"), []byte("{}\nbroken\n"), 0o600))
	_, err = Load(dir, &none)
	require.ErrorContains(t, err, "verbs-x.jsonl: line 2: ")
}

// The statements of today judge the figures of an earlier run.
func TestLoadJudges(t *testing.T) {
	dir := t.TempDir()
	res := result()
	require.NoError(t, Save(dir, machine, res))
	var g bench.Registry
	e := *res.Experiment
	e.Axes = []bench.Axis{{Name: "size", Unit: "B"}}
	e.Run = func(context.Context, *bench.Run) error { return nil }
	e.Claims = []bench.Statement{{
		Sentence: "It is fast.", Paper: "7 GB/s",
		Compare: bench.Value{Of: []string{"rc-write"}, Unit: "MB/s", At: bench.Everywhere("B"), Limit: bench.AtLeast(7000)},
	}}
	g.Register(&e)
	results, err := Load(dir, &g)
	require.NoError(t, err)
	require.Equal(t, "refuted because rc-write at 4 KiB, in MB/s 6300 (at least 7000): the cause is not measured", results[0].Outcomes[0].String())
}

// The columns of the CSV file are the members of the JSON objects.
func TestCSV(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Save(dir, machine, result()))
	f, err := os.Open(filepath.Join(dir, "verbs-x.csv"))
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Equal(t, "experiment series x x_unit y y_unit n p50 p99 min max baseline ratio", strings.Join(lines[0], " "))
	require.Len(t, lines, 1+len(result().Rows))
	require.Equal(t, []string{"verbs-x", "udp", "4096", "B", "7000", "MB/s", "9", "7000", "7100", "6500", "7100", "", ""}, lines[1])
	require.Equal(t, []string{"verbs-x", "rc-write", "4096", "B", "6300", "MB/s", "", "", "", "", "", "udp", "0.9"}, lines[2])
	require.NoError(t, Save(dir, machine, failure()))
	require.NoFileExists(t, filepath.Join(dir, "verbs-y.csv"))
}
