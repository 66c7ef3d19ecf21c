package mpi_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
)

// TestStatsAll checks that Stats.All yields each counter once, under a name of its own.
func TestStatsAll(t *testing.T) {
	var s mpi.Stats
	var want []uint64
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.CanUint() {
			f.SetUint(uint64(i) + 1)
			want = append(want, uint64(i)+1)
		}
	}
	s.Drops = map[string]uint64{"duplicate": 1001, "too_far": 1002}
	want = append(want, 1001, 1002)
	got := maps.Collect(s.All())
	require.EqualValues(t, 1001, got["dropped_duplicate"])
	require.ElementsMatch(t, want, slices.Collect(maps.Values(got)))
	for range s.All() { // may end early
		break
	}
}
