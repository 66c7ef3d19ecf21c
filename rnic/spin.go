package rnic

import "time"

// A spinner decides how long a waiter spins before it sleeps. After
// maxSpinMisses unsuccessful spins in a row it skips spinning for skippedWaits
// waits.
type spinner struct {
	budgetMax int64 // nanoseconds
	misses    int   // consecutive spins that found nothing
	skipWaits int   // waits left that skip spinning
	hogSkips  int   // waits skipped after the last yield to a hog
	hits      int   // successful spins since then
}

const (
	maxSpinMisses = 8
	skippedWaits  = 32
	hogHits       = 16 // successful spins that halve hogSkips
)

func (s *spinner) init(d time.Duration) {
	switch {
	case d == 0:
		s.budgetMax = int64(DefaultSpin)
	case d > 0:
		s.budgetMax = int64(d)
	}
}

// budget returns the duration of the next spin in nanoseconds.
func (s *spinner) budget() int64 {
	if s.skipWaits > 0 {
		s.skipWaits--
		return 0
	}
	return s.budgetMax
}

// recordHit records a spin that found something.
func (s *spinner) recordHit() {
	s.misses = 0
	if s.hits++; s.hits >= hogHits {
		s.hits, s.hogSkips = 0, s.hogSkips/2
	}
}

// recordMiss records a spin that found nothing.
func (s *spinner) recordMiss() {
	if s.misses++; s.misses >= maxSpinMisses {
		s.misses = maxSpinMisses / 2
		s.skipWaits = skippedWaits
	}
}

// recordHog records that another thread has hogged the processor. The number of
// waits that skip spinning doubles each time.
func (s *spinner) recordHog() {
	s.hogSkips = min(max(4, 2*s.hogSkips), 2*skippedWaits)
	s.skipWaits, s.hits = s.hogSkips, 0
}

// recordShortSleep records that a sleep without a spin was shorter than a spin.
// It returns the duration of the next spin: the full budget, unless a hog had
// the processor.
func (s *spinner) recordShortSleep() int64 {
	if s.hogSkips > 0 {
		return 0
	}
	s.skipWaits, s.misses = 0, max(0, s.misses-1)
	return s.budgetMax
}
