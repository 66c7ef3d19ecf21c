package sched

import "time"

// A Spinner decides how long the waiters of a socket spin before they sleep. After
// maxSpinMisses unsuccessful spins in a row it skips spinning for skippedWaits
// waits. It must not be used concurrently.
type Spinner struct {
	// Shared reports whether other threads ran when a waiter last yielded.
	Shared bool

	YieldFunc func() // replaces Yield, for simulations; nil otherwise

	clock     func() int64 // in nanoseconds
	budgetMax int64        // nanoseconds
	misses    int          // consecutive spins that found nothing
	skipWaits int          // waits left that skip spinning
	hogSkips  int          // waits skipped after the last yield to a hog
	hits      int          // successful spins since then
}

const (
	maxSpinMisses = 8
	skippedWaits  = 32
	hogHits       = 16 // successful spins that halve hogSkips
)

// Init sets the time that a waiter spins, none if d is not positive, and the clock,
// in nanoseconds.
func (s *Spinner) Init(d time.Duration, clock func() int64) {
	s.clock, s.budgetMax = clock, int64(max(d, 0))
}

// NextBudget returns the duration of the next spin in nanoseconds.
func (s *Spinner) NextBudget() int64 {
	if s.skipWaits > 0 {
		s.skipWaits--
		return 0
	}
	return s.budgetMax
}

// RecordHit records a spin that found something.
func (s *Spinner) RecordHit() {
	s.misses = 0
	if s.hits++; s.hits >= hogHits {
		s.hits, s.hogSkips = 0, s.hogSkips/2
	}
}

// RecordMiss records a spin that found nothing.
func (s *Spinner) RecordMiss() {
	if s.misses++; s.misses >= maxSpinMisses {
		s.misses = maxSpinMisses / 2
		s.skipWaits = skippedWaits
	}
}

// RecordHog records that another thread has hogged the processor. The number of
// waits that skip spinning doubles each time.
func (s *Spinner) RecordHog() {
	s.hogSkips = min(max(4, 2*s.hogSkips), 2*skippedWaits)
	s.skipWaits, s.hits = s.hogSkips, 0
}

// RecordShortSleep records that a sleep without a spin was shorter than a spin.
// It returns the duration of the next spin: the full budget, unless a hog had
// the processor.
func (s *Spinner) RecordShortSleep() int64 {
	if s.hogSkips > 0 {
		return 0
	}
	s.skipWaits, s.misses = 0, max(0, s.misses-1)
	return s.budgetMax
}

// TimedYield yields to other threads and returns how long they ran.
func (s *Spinner) TimedYield() time.Duration {
	began := s.clock()
	if s.YieldFunc != nil {
		s.YieldFunc()
	} else {
		Yield()
	}
	return time.Duration(s.clock() - began)
}
