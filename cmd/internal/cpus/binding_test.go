package cpus

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// two is a machine with two cores of two threads each, numbered as on most machines.
var two = [][]int{{0, 2}, {1, 3}}

func TestParseBinding(t *testing.T) {
	for name, want := range map[string]Binding{
		"auto": Auto, "none": None, "core": Core, "hwthread": Thread,
		"core:overload-allowed": Core, "none:overload-allowed": None,
	} {
		b, err := ParseBinding(name)
		require.NoError(t, err)
		require.Equal(t, want, b, name)
	}
	for _, name := range []string{"socket", "Core", "core:", ":overload-allowed", ""} {
		_, err := ParseBinding(name)
		require.ErrorContains(t, err, "want auto, none, core or hwthread", name)
	}
}

func TestSets(t *testing.T) {
	threads := [][]int{{0}, {1}, {2}, {3}}
	for _, c := range []struct {
		b    Binding
		n    int
		want [][]int
	}{
		{Thread, 1, threads},
		{Thread, 7, threads},
		{Core, 1, two},
		{None, 8, nil},
		{Auto, 1, nil},
		{Auto, 4, nil},
		{Auto, 6, nil},
		{Auto, 8, threads},
		{Auto, 16, threads},
	} {
		sets, err := c.b.setsFor(c.n, two)
		require.NoError(t, err)
		require.Equal(t, c.want, sets, "%s of %d", c.b, c.n)
	}
	for _, b := range []Binding{Auto, None} {
		sets, err := b.setsFor(8, nil)
		require.NoError(t, err)
		require.Nil(t, sets, "of a system without this information")
	}
	for _, b := range []Binding{Core, Thread} {
		_, err := b.setsFor(8, nil)
		require.ErrorIs(t, err, ErrUnsupported)
	}
}

// Auto must not fail on any machine.
func TestPlaces(t *testing.T) {
	sets, err := Auto.CPUSets(1)
	require.NoError(t, err)
	require.Nil(t, sets)
	_, err = Auto.CPUSets(2 * max(1, len(CPUOrder())))
	require.NoError(t, err)
	sets, err = None.CPUSets(5)
	require.NoError(t, err)
	require.Nil(t, sets)
}

func TestTurn(t *testing.T) {
	require.Nil(t, SetOf(nil, 3))
	require.Equal(t, []int{1, 3}, SetOf(two, 3))
}

func TestOrder(t *testing.T) {
	require.Equal(t, []int{0, 1, 2, 3}, spreadOverCores(two))
	require.Equal(t, []int{0, 2, 1, 3}, spreadOverCores([][]int{{0, 1}, {2, 3}}), "one of each core first")
	require.Equal(t, []int{5}, spreadOverCores([][]int{{5}}))
}
