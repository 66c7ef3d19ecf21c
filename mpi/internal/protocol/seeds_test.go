package protocol

import (
	"os"
	"strconv"
	"testing"
)

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
