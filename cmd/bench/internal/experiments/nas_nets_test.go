package experiments

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
)

func TestHybridLimits(t *testing.T) {
	require.Equal(t, []int{0, 4, 8, 16}, hybridLimits([]int{8, 4, 32}, 16))
	require.Equal(t, []int{0, 4}, hybridLimits([]int{4, 8}, 4))
	require.Equal(t, []int{0, 2}, hybridLimits(nil, 2))
}

// TestHybridIsMeasured: the ends of the axis of RC connections have rounds of hybrid jobs of their own, and not
// those of the transports UD and RC.
func TestHybridIsMeasured(t *testing.T) {
	found, err := bench.Default.Find("nas-is")
	require.NoError(t, err)
	res, err := bench.Execute(t.Context(), found[0], bench.Options{Quick: true, Set: bench.Settings{
		"beside": "nothing", "ranks": "2", "class": "S", "rounds": "2", "over": "rdma,ud,hybrid", "rc-limit": "1"}})
	require.NoError(t, err)
	var others [][]float64
	limits := []float64{}
	for _, r := range res.Rows {
		switch {
		case r.YUnit == operations:
			others = append(others, r.Rounds)
		case r.Series == "mpi-hybrid" && r.YUnit == onRanks(operations, 2):
			limits = append(limits, r.X)
			require.NotEmpty(t, r.Rounds)
			require.NotContains(t, others, r.Rounds, "%v RC connections", r.X)
		}
	}
	require.Len(t, others, 3)
	require.Equal(t, []float64{0, 1, 2}, limits)
}

// TestFutureWorkIsOurs: a sentence that a paper leaves to future work is a claim of our own.
func TestFutureWorkIsOurs(t *testing.T) {
	for _, e := range bench.Default.All() {
		for i, s := range e.Claims {
			if e.SourceOf(i) != bench.Adapter {
				require.NotContains(t, s.Paper, "future work", "%s: %s", e.Name, s.Sentence)
			}
		}
	}
}
