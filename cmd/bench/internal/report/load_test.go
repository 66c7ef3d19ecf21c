package report

import (
	"encoding/csv"
	"math"
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
	saved.Verdict.Checks = []bench.Check{{Description: "x 1.2 (at most 1.3)", Figure: 1.2, Limit: 1.3, Holds: true}}
	require.NoError(t, Save(dir, machine, saved))
	require.NoError(t, Save(dir, machine, failure()))
	_, err := SavePage(dir, machine, nil)
	require.NoError(t, err)
	var none bench.Registry
	results, on, err := Load(dir, &none)
	require.NoError(t, err)
	require.Equal(t, machine, on)
	require.Len(t, results, 2)
	saved.Experiment.Layer = 0 // of an experiment that there is not any more
	require.Equal(t, saved, results[0])
	require.EqualError(t, results[1].Err, "verbs-y: worker <rank 1> fell over")

	// Files of a run that was cut short, and had no NAME.json, do as well.
	require.NoError(t, os.Remove(filepath.Join(dir, "verbs-x.json")))
	lines, err := os.ReadFile(filepath.Join(dir, "verbs-x.jsonl"))
	require.NoError(t, err)
	rows, _, _ := strings.Cut(string(lines), `{"experiment":"verbs-x","claim"`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "verbs-x.jsonl"), []byte(rows), 0o600))
	results, _, err = Load(dir, &none)
	require.NoError(t, err)
	require.Equal(t, saved.Rows, results[0].Rows)
	require.ErrorIs(t, results[0].Err, errUnfinished)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "verbs-x.jsonl"), []byte("{}\nbroken\n"), 0o600))
	_, _, err = Load(dir, &none)
	require.ErrorContains(t, err, "verbs-x.jsonl: line 2: ")
}

// A check against nothing makes no file that cannot be read.
func TestSaveInfinite(t *testing.T) {
	dir := t.TempDir()
	res := result()
	res.Verdict.Checks = []bench.Check{{Description: "gain", Figure: math.Inf(1), Limit: 4, Holds: true}}
	require.NoError(t, Save(dir, machine, res))
	results, _, err := Load(dir, &bench.Registry{})
	require.NoError(t, err)
	require.Equal(t, []bench.Check{{Description: "gain", Holds: true}}, results[0].Verdict.Checks)
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
