package rnic

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// skipped is how many waits do not spin.
func (s *spinner) skipped() (n int) {
	for s.budget() == 0 {
		n++
	}
	return n
}

// Looking stops for a while when it has been in vain eight times in a row, and then when
// it is in vain four times more.
func TestSpinnerMisses(t *testing.T) {
	var s spinner
	s.init(time.Millisecond)
	for range maxSpinMisses - 1 {
		s.recordMiss()
		require.Zero(t, s.skipped())
	}
	s.recordHit()
	for range maxSpinMisses {
		require.Zero(t, s.skipped())
		s.recordMiss()
	}
	require.Equal(t, skippedWaits, s.skipped())
	for range maxSpinMisses / 2 {
		require.Zero(t, s.skipped())
		s.recordMiss()
	}
	require.Equal(t, skippedWaits, s.skipped())
	require.EqualValues(t, time.Millisecond, s.budget())
}

// Beside a thread that computes the pauses grow; where ranks only have long turns
// they stay short.
func TestSpinnerHogged(t *testing.T) {
	var s spinner
	s.init(0)
	for _, pause := range []int{4, 8, 16, 32, 64, 64} {
		s.recordHog()
		require.Equal(t, pause, s.skipped())
	}
	// What is found in between is found by who had the processor.
	for range 10 {
		for range hogHits - 1 {
			s.recordHit()
		}
		s.recordHog()
		require.Equal(t, 64, s.skipped())
	}
	for range 5 * hogHits {
		s.recordHit()
	}
	s.recordHog()
	require.Equal(t, 4, s.skipped())
}

// Where sleeps are short there is looking again, but not beside a thread that computes.
func TestSpinnerWoken(t *testing.T) {
	var s spinner
	s.init(time.Millisecond)
	for range maxSpinMisses {
		require.Zero(t, s.skipped())
		s.recordMiss()
	}
	require.Zero(t, s.budget(), "it does not look now")
	require.EqualValues(t, time.Millisecond, s.recordShortSleep())
	require.Zero(t, s.skipped())
	for range maxSpinMisses/2 + 1 { // it has not forgotten all that was in vain
		require.Zero(t, s.skipped())
		s.recordMiss()
	}
	require.Equal(t, skippedWaits, s.skipped())
	s.recordHog()
	require.Zero(t, s.recordShortSleep())
	require.Equal(t, 4, s.skipped())
}
