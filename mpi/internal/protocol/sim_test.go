package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever programs do and whatever ways packets take: each receive gets the
// message that MPI's rules give it, whole or cut; nothing waits for ever, not for
// a lost rank either; and no memory is touched once it has been handed back.
func TestSimulation(t *testing.T) {
	var all coverage
	everySeed(t, func(seed uint64, trace func(string)) error {
		seen, err := runSeed(seed, trace)
		all.add(&seen.stats)
		return err
	})
	t.Logf("%+v", all.stats)
	if all.stats.Eager > 1000 { // and it has all happened
		s := all.stats
		for _, n := range []uint64{s.Rendezvous, s.Self, s.Expected, s.Unexpected, s.Early, s.Stalled, s.Throttled, s.Repacked} {
			require.NotZero(t, n, "%+v", s)
		}
	}
}

// One seed is one run.
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
