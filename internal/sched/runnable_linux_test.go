package sched

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCountProcessors(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-1": 2, "0-3,8,10-11": 7, "": 0, "0-": 0, "3-1": 0, "x": 0} {
		require.Equal(t, want, countProcessors(list), list)
	}
	require.Positive(t, onlineProcessors())
}

func TestRunnable(t *testing.T) {
	require.Equal(t, 34, parseRunnable([]byte("19.62 23.98 22.40 34/199 8175\n")))
	for _, line := range []string{"", "1 2 3", "1 2 3 x/9 1", "1 2 3 / 4"} {
		require.Zero(t, parseRunnable([]byte(line)), line)
	}
	require.GreaterOrEqual(t, loadavg(), 0)
}
