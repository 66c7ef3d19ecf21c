package counters_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/counters"
)

type drops struct{ TooFar, BadQKey uint64 }

type Base struct{ SendRNRErr uint64 }

type stats struct {
	Base
	Open    int
	Kind    uint8 // not a number of All
	Dropped drops
	Reasons map[string]uint64 `counter:"reason"`
	ICMP    uint64            `counter:"icmp_errors"`
}

func ExampleAll() {
	s := stats{Base: Base{1}, Open: 2, Kind: 9, Dropped: drops{3, 4}, Reasons: map[string]uint64{"b": 6, "a": 5}, ICMP: 7}
	for name, n := range counters.All(s) {
		fmt.Print(name, " ", n, ", ")
	}
	// Output: send_rnr_err 1, open 2, dropped_too_far 3, dropped_bad_q_key 4, reason_a 5, reason_b 6, icmp_errors 7,
}

// TestAllMayEndEarly ends the loop at each of the numbers.
func TestAllMayEndEarly(t *testing.T) {
	s := stats{Reasons: map[string]uint64{"a": 5}}
	for end := range 6 {
		n := 0
		for range counters.All(s) {
			if n++; n > end {
				break
			}
		}
		require.Equal(t, end+1, n)
	}
}

func TestAdd(t *testing.T) {
	sum := stats{Base: Base{1}, ICMP: 10}
	counters.Add(&sum, Base{5})
	counters.Add(&sum, struct {
		Base
		ICMP uint64
	}{Base{2}, 3})
	require.Equal(t, stats{Base: Base{8}, ICMP: 13}, sum)
	d := drops{1, 2}
	counters.Add(&d, drops{10, 20})
	require.Equal(t, drops{11, 22}, d)
	require.PanicsWithValue(t, "counters: add counters_test.drops: counters_test.Base has no field TooFar",
		func() { counters.Add(&Base{}, d) })
}

func TestSet(t *testing.T) {
	var d drops
	counters.Set(&d, []uint64{1, 2})
	require.Equal(t, drops{1, 2}, d)
	require.Panics(t, func() { counters.Set(&d, []uint64{1}) })
}
