package acp_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
)

// TestStatsAll checks that Stats.All yields each counter once, under a name of its own.
func TestStatsAll(t *testing.T) {
	var s acp.Stats
	var want []uint64
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.CanUint() {
			f.SetUint(uint64(i) + 1)
			want = append(want, uint64(i)+1)
		}
	}
	got := maps.Collect(s.All())
	require.ElementsMatch(t, want, slices.Collect(maps.Values(got)))
	for range s.All() { // may end early
		break
	}
}
