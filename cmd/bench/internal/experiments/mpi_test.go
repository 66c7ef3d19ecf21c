package experiments

import (
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
