package misuse

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestArguments checks that valid arguments alone are passed to an unusable receiver only.
func TestArguments(t *testing.T) {
	s := &Surface{}
	ints := func(usable bool) (lists [][]int64) {
		for _, list := range s.argumentLists(reflect.TypeFor[func(a, b int)](), usable) {
			var x []int64
			for _, v := range list {
				x = append(x, v.Int())
			}
			lists = append(lists, x)
		}
		return lists
	}
	bad := [][]int64{{-7, 0}, {math.MinInt64, 0}, {math.MaxInt64, 0}, {0, -7}, {0, math.MinInt64}, {0, math.MaxInt64},
		{-7, -7}, {math.MinInt64, math.MinInt64}, {math.MaxInt64, math.MaxInt64}}
	require.Equal(t, bad, ints(true))
	require.Equal(t, append([][]int64{{0, 0}}, bad...), ints(false))
}

// TestRead checks that functions, methods and the kind of their receivers are read from the source.
func TestRead(t *testing.T) {
	src := (&Surface{Dir: "."}).readSource(t)
	require.Empty(t, src.funcs)
	require.Equal(t, []string{"Surface"}, src.types)
	require.Equal(t, map[string]bool{"Surface.Check": false}, src.byValue)
}
