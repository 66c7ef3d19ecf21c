package nack

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/racesync"
)

// TestSeeds runs random programs on random networks until they are idle: all messages have arrived,
// once and in order, and no state remains. SOFTRNIC_SEED runs one seed, SOFTRNIC_SEEDS that many. A
// failing seed is run again, and the end of its trace is printed.
func TestSeeds(t *testing.T) {
	first, n := uint64(1), uint64(300)
	switch {
	case racesync.Enabled:
		n = 20
	case testing.Short():
		n = 100
	}
	if v, err := strconv.ParseUint(os.Getenv("SOFTRNIC_SEEDS"), 10, 64); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("SOFTRNIC_SEED"), 10, 64); err == nil {
		first, n = v, 1
	}
	var w world
	for seed := first; seed < first+n; seed++ {
		seen, err := runSeed(seed, nil)
		if err != nil {
			var lines []string
			_, again := runSeed(seed, func(s string) { lines = append(lines, s) })
			for _, s := range lines[max(0, len(lines)-80):] {
				t.Log(s)
			}
			if again == nil || again.Error() != err.Error() {
				t.Errorf("seed %d: the second run differs: %v", seed, again)
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		w.add(&seen)
	}
	t.Logf("%+v", w.seen)
	if n < 300 {
		return // rare events
	}
	s := w.seen
	for what, n := range map[string]uint64{"resent": s.Retransmitted, "asks": s.Probes, "acks": s.Acks, "nacks": s.Nacks, "early": s.OutOfOrder, "restarts": s.Restarts,
		"not us": s.Dropped[DropStaleDestination], "old epoch": s.Dropped[DropOldEpoch], "duplicate": s.Dropped[DropDuplicate], "no memory": s.Dropped[DropNoMemory]} {
		require.NotZero(t, n, "the seeds never have: %s", what)
	}
}
