package rnic

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// countSkipped returns the number of waits that do not spin.
func (s *spinner) countSkipped() (n int) {
	for s.budget() == 0 {
		n++
	}
	return n
}

// TestSpinnerMisses checks that spinning stops for a while after eight unsuccessful spins in a row,
// and later after four more.
func TestSpinnerMisses(t *testing.T) {
	var s spinner
	s.init(time.Millisecond)
	for range maxSpinMisses - 1 {
		s.recordMiss()
		require.Zero(t, s.countSkipped())
	}
	s.recordHit()
	for range maxSpinMisses {
		require.Zero(t, s.countSkipped())
		s.recordMiss()
	}
	require.Equal(t, skippedWaits, s.countSkipped())
	for range maxSpinMisses / 2 {
		require.Zero(t, s.countSkipped())
		s.recordMiss()
	}
	require.Equal(t, skippedWaits, s.countSkipped())
	require.EqualValues(t, time.Millisecond, s.budget())
}

// TestSpinnerHogged checks that the pauses grow beside a thread that computes, and stay short
// beside ranks that share the processor.
func TestSpinnerHogged(t *testing.T) {
	var s spinner
	s.init(0)
	for _, pause := range []int{4, 8, 16, 32, 64, 64} {
		s.recordHog()
		require.Equal(t, pause, s.countSkipped())
	}
	// A packet in between was found by the thread that had the processor.
	for range 10 {
		for range hogHits - 1 {
			s.recordHit()
		}
		s.recordHog()
		require.Equal(t, 64, s.countSkipped())
	}
	for range 5 * hogHits {
		s.recordHit()
	}
	s.recordHog()
	require.Equal(t, 4, s.countSkipped())
}

// TestSpinnerWoken checks that spinning resumes if sleeps are short, but not beside a thread that
// computes.
func TestSpinnerWoken(t *testing.T) {
	var s spinner
	s.init(time.Millisecond)
	for range maxSpinMisses {
		require.Zero(t, s.countSkipped())
		s.recordMiss()
	}
	require.Zero(t, s.budget(), "it does not look now")
	require.EqualValues(t, time.Millisecond, s.recordShortSleep())
	require.Zero(t, s.countSkipped())
	for range maxSpinMisses/2 + 1 { // the misses still count
		require.Zero(t, s.countSkipped())
		s.recordMiss()
	}
	require.Equal(t, skippedWaits, s.countSkipped())
	s.recordHog()
	require.Zero(t, s.recordShortSleep())
	require.Equal(t, 4, s.countSkipped())
}
