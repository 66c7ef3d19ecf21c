package rnic

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process with one processor can do something else while the adapter waits in a
// system call, unless its user has said otherwise.
func TestSetMaxProcs(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	open := func() int {
		d, err := Open(Options{})
		require.NoError(t, err)
		defer d.Close()
		return runtime.GOMAXPROCS(0)
	}
	t.Setenv("GOMAXPROCS", "1")
	require.Equal(t, 1, open())
	t.Setenv("GOMAXPROCS", "")
	require.Equal(t, 2, open())
	runtime.GOMAXPROCS(3)
	require.Equal(t, 3, open(), "enough")
}
