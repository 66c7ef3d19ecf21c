package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/counters"
)

// TestSimulation checks for random programs and networks that each receive gets the message that
// MPI's rules determine, complete or truncated, that no request waits forever, also not for a lost
// rank, and that memory of completed requests is not accessed.
func TestSimulation(t *testing.T) {
	var all Stats
	everySeed(t, func(seed uint64, trace func(string)) error {
		seen, err := runSeed(seed, trace)
		counters.Add(&all, seen)
		return err
	})
	t.Logf("%+v", all)
	if all.Eager > 1000 { // and each case has occurred
		for _, n := range []uint64{all.Rendezvous, all.Self, all.Expected, all.Unexpected, all.Early, all.Stalled, all.Throttled, all.Repacked} {
			require.NotZero(t, n, "%+v", all)
		}
	}
}

// TestSimulationRepeats checks that a seed determines the run.
func TestSimulationRepeats(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		var runs [2]strings.Builder
		for i := range runs {
			_, err := runSeed(seed, func(s string) { runs[i].WriteString(s + "\n") })
			require.NoError(t, err)
		}
		require.Greater(t, runs[0].Len(), 1000)
		require.Equal(t, runs[0].String(), runs[1].String())
	}
}
