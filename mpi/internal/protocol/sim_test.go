package protocol

import (
	"os"
	"strconv"
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

// everySeed runs a simulation for each seed. SOFTRNIC_SEED selects a seed, SOFTRNIC_SEEDS the
// number of seeds.
func everySeed(t *testing.T, run func(seed uint64, trace func(string)) error) {
	first, n := uint64(1), uint64(1000)
	if testing.Short() {
		n = 100
	}
	if v, err := strconv.ParseUint(os.Getenv("SOFTRNIC_SEEDS"), 10, 64); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("SOFTRNIC_SEED"), 10, 64); err == nil {
		first, n = v, 1
	}
	for seed := first; seed < first+n; seed++ {
		err := run(seed, nil)
		if err == nil {
			continue
		}
		var lines []string
		again := run(seed, func(s string) { lines = append(lines, s) })
		for _, s := range lines[max(0, len(lines)-80):] {
			t.Log(s)
		}
		if again == nil || again.Error() != err.Error() {
			t.Errorf("seed %d: the second run differs: %v", seed, again)
		}
		t.Fatalf("seed %d: %v", seed, err)
	}
}
