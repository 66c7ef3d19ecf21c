package experiments

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

// figures returns samples of one round.
func figures(of map[string]float64) (samples []bench.Sample) {
	for series, y := range of {
		samples = append(samples, bench.Sample{Series: series, Figures: []float64{y}})
	}
	return samples
}

func TestInMessages(t *testing.T) {
	rates := inMessages(figures(map[string]float64{"mpi-rdma": 8}), 8)
	require.Equal(t, []float64{1e6}, rates[0].Figures)
}

// absence returns the reason why Open MPI was not measured, or "".
func absence(rows []bench.Row) string {
	for _, r := range rows {
		if r.Series == overOpenMPI && r.Absent != "" {
			return r.Absent
		}
	}
	return ""
}

// Open MPI is measured if it is installed; otherwise a row has the reason.
func TestBesideOpenMPI(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	found, err := bench.Default.Find("imb-barrier")
	require.NoError(t, err)
	res, err := bench.Execute(t.Context(), found[0], bench.Options{Quick: true, Set: bench.Settings{"ranks": "4", "iters": "5", "rounds": "1"}})
	require.NoError(t, err)
	if reason := absence(res.Rows); reason != "" {
		t.Skip(reason)
	}
	require.True(t, slices.ContainsFunc(res.Outcomes, func(o bench.Outcome) bool { return strings.Contains(o.Ours, "over openmpi-tcp at 4 ranks") }))
	require.True(t, slices.ContainsFunc(res.Rows, func(r bench.Row) bool { return r.Series == overOpenMPI && r.Y > 0 && r.Baseline == "mpi-tcp" }))
}

// Without Open MPI an experiment continues, and a row and the statements say so.
func TestWithoutOpenMPI(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	found, err := bench.Default.Find("imb-barrier")
	require.NoError(t, err)
	res, err := bench.Execute(t.Context(), found[0], bench.Options{Quick: true, Set: bench.Settings{"ranks": "4", "over": "shared", "iters": "5", "rounds": "1"}})
	require.NoError(t, err)
	require.Equal(t, "not installed here (Debian: openmpi-bin, libopenmpi-dev)", absence(res.Rows))
	require.True(t, slices.ContainsFunc(res.Outcomes, func(o bench.Outcome) bool {
		return o.Word == bench.NotJudged && strings.Contains(o.Reason, "openmpi-tcp: not installed here")
	}))
}

// TestFailingOpponent: an opponent that is installed and fails is a row with its error and its packages, and the
// experiment goes on: at the first test, and after a round.
func TestFailingOpponent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the opponent is a shell script")
	}
	const version = "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'Open MPI 4.1.6'; exit 0; }\n"
	for name, c := range map[string]struct{ mpirun, want string }{
		"at once":       {"echo no slots >&2\nexit 1\n", "does not work (Debian: openmpi-bin, libopenmpi-dev): "},
		"in a round":    {"case \"$*\" in *latency*) echo 5;; *) echo no slots >&2; exit 1;; esac\n", "(Debian: openmpi-bin, libopenmpi-dev): "},
		"without words": {"echo no slots\n", `does not work (Debian: openmpi-bin, libopenmpi-dev): peers: Open MPI's latency printed "no slots\n"`},
	} {
		dir := t.TempDir()
		for name, script := range map[string]string{"mpicc.openmpi": "exit 0\n", "mpirun.openmpi": c.mpirun} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(version+script), 0o755))
		}
		t.Setenv("PATH", dir)
		found, err := bench.Default.Find("imb-barrier")
		require.NoError(t, err)
		res, err := bench.Execute(t.Context(), found[0], bench.Options{Quick: true, Set: bench.Settings{"ranks": "2", "over": "shared", "iters": "5", "rounds": "1"}})
		require.NoError(t, err, name)
		reason := absence(res.Rows)
		require.Contains(t, reason, c.want, name)
		require.Contains(t, reason, "no slots", name)
		require.True(t, slices.ContainsFunc(res.Rows, func(r bench.Row) bool { return r.Series == "mpi-shared" && r.Y > 0 }), name)
		require.False(t, slices.ContainsFunc(res.Rows, func(r bench.Row) bool { return r.Series == overOpenMPI && r.Absent == "" }), name)
	}
}
