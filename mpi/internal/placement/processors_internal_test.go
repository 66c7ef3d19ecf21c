package placement

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCountList checks the parsers of lists of processors and of quotas.
func TestCountList(t *testing.T) {
	for list, n := range map[string]int{"0": 1, "0-3": 4, "0-3,8\n": 5, "2,4-5,7": 4, "": 0, "\n": 0, "3-1": 0, "-1": 0, "x": 0, "1,x": 0} {
		require.Equal(t, n, countList(list), "%q", list)
	}
	for limit, n := range map[string]int{"max 100000\n": 0, "200000 100000\n": 2, "150000 100000": 2, "1 100000": 1, "": 0, "5": 0, "-1 5": 0, "5 0": 0} {
		require.Equal(t, n, countQuota(limit), "%q", limit)
	}
	require.Positive(t, machineProcessors())
}
