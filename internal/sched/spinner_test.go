package sched

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// countSkipped returns the number of waits that do not spin.
func (s *Spinner) countSkipped() (n int) {
	for s.NextBudget() == 0 {
		n++
	}
	return n
}

// TestSpinnerMisses checks that spinning stops for a while after eight unsuccessful spins in a row,
// and later after four more.
func TestSpinnerMisses(t *testing.T) {
	var s Spinner
	s.Init(time.Millisecond, nil)
	for range maxSpinMisses - 1 {
		s.RecordMiss()
		require.Zero(t, s.countSkipped())
	}
	s.RecordHit()
	for range maxSpinMisses {
		require.Zero(t, s.countSkipped())
		s.RecordMiss()
	}
	require.Equal(t, skippedWaits, s.countSkipped())
	for range maxSpinMisses / 2 {
		require.Zero(t, s.countSkipped())
		s.RecordMiss()
	}
	require.Equal(t, skippedWaits, s.countSkipped())
	require.EqualValues(t, time.Millisecond, s.NextBudget())
}

// TestSpinnerHogged checks that the pauses grow beside a thread that computes, and stay short
// beside ranks that share the processor.
func TestSpinnerHogged(t *testing.T) {
	var s Spinner
	s.Init(50*time.Microsecond, nil)
	for _, pause := range []int{4, 8, 16, 32, 64, 64} {
		s.RecordHog()
		require.Equal(t, pause, s.countSkipped())
	}
	// A packet in between was found by the thread that had the processor.
	for range 10 {
		for range hogHits - 1 {
			s.RecordHit()
		}
		s.RecordHog()
		require.Equal(t, 64, s.countSkipped())
	}
	for range 5 * hogHits {
		s.RecordHit()
	}
	s.RecordHog()
	require.Equal(t, 4, s.countSkipped())
}

// TestSpinnerWoken checks that spinning resumes if sleeps are short, but not beside a thread that
// computes.
func TestSpinnerWoken(t *testing.T) {
	var s Spinner
	s.Init(time.Millisecond, nil)
	for range maxSpinMisses {
		require.Zero(t, s.countSkipped())
		s.RecordMiss()
	}
	require.Zero(t, s.NextBudget(), "it does not look now")
	require.EqualValues(t, time.Millisecond, s.RecordShortSleep())
	require.Zero(t, s.countSkipped())
	for range maxSpinMisses/2 + 1 { // the misses still count
		require.Zero(t, s.countSkipped())
		s.RecordMiss()
	}
	require.Equal(t, skippedWaits, s.countSkipped())
	s.RecordHog()
	require.Zero(t, s.RecordShortSleep())
	require.Equal(t, 4, s.countSkipped())
}

// TestHogSlice checks that a long yield was to a thread that computes, unless so many threads are
// runnable that each has run for a short time.
func TestHogSlice(t *testing.T) {
	for runnable, want := range map[int]bool{0: true, 1: true, 2: true, 4: true, 5: false, 16: false} {
		require.Equal(t, want, isHogSlice(3*time.Millisecond, runnable), runnable)
	}
	var s Spinner
	require.False(t, s.hogged(minHogYield-1))
	require.False(t, s.PeerMayHaveRun(minSharedYield))
	require.True(t, s.PeerMayHaveRun(minHogYield-1))
	s.YieldFunc = func() {}
	require.True(t, s.hogged(minHogYield))
	require.False(t, s.PeerMayHaveRun(minHogYield))
}
