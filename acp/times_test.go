package acp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWaitTimes checks that the sleeps of a leader that polls memory double up to a millisecond.
func TestWaitTimes(t *testing.T) {
	naps := 1
	for nap := minSleep; nap < maxSleep; nap = nextSleep(nap) {
		require.Equal(t, min(2*nap, time.Millisecond), nextSleep(nap))
		naps++
	}
	require.Equal(t, 7, naps, "naps until the longest")
	require.Equal(t, maxSleep, nextSleep(maxSleep))
}
