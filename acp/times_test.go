package acp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWaitTimes: a rank that only memory tells of something sleeps twice as long each time, up
// to a millisecond.
func TestWaitTimes(t *testing.T) {
	naps := 1
	for nap := minSleep; nap < maxSleep; nap = nextSleep(nap) {
		require.Equal(t, min(2*nap, time.Millisecond), nextSleep(nap))
		naps++
	}
	require.Equal(t, 7, naps, "naps until the longest")
	require.Equal(t, maxSleep, nextSleep(maxSleep))
}
