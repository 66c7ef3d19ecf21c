package rnic

import "time"

// spinner decides how long a waiter looks before it sleeps: as long as that
// pays. After several sleeps in a row that came too soon it skips the looking,
// and tries again from time to time.
type spinner struct {
	budgetMax int64 // nanoseconds
	misses    int   // spins in a row that found nothing
	skipWaits int   // waits left that do not spin
	hogSkips  int   // how many did not after the last yield that took long
	hits      int   // since then
}

const (
	maxSpinMisses = 8
	skippedWaits  = 32
	hogHits       = 16 // spins that must have found something for a hog to be forgotten by half
)

func (s *spinner) init(d time.Duration) {
	switch {
	case d == 0:
		s.budgetMax = int64(DefaultSpin)
	case d > 0:
		s.budgetMax = int64(d)
	}
}

// budget is how long to spin now, in nanoseconds.
func (s *spinner) budget() int64 {
	if s.skipWaits > 0 {
		s.skipWaits--
		return 0
	}
	return s.budgetMax
}

// recordHit and miss report how a spin ended.
func (s *spinner) recordHit() {
	s.misses = 0
	if s.hits++; s.hits >= hogHits {
		s.hits, s.hogSkips = 0, s.hogSkips/2
	}
}

func (s *spinner) recordMiss() {
	if s.misses++; s.misses >= maxSpinMisses {
		s.misses = maxSpinMisses / 2
		s.skipWaits = skippedWaits
	}
}

// recordHog reports that another thread has kept the processor for long. Twice in a row
// it will probably do so again.
func (s *spinner) recordHog() {
	s.hogSkips = min(max(4, 2*s.hogSkips), 2*skippedWaits)
	s.skipWaits, s.hits = s.hogSkips, 0
}

// recordShortSleep reports that a sleep that no looking went before was so short that looking would have
// done. It returns how long to look now: as long as ever, unless it was a hog that had the
// processor.
func (s *spinner) recordShortSleep() int64 {
	if s.hogSkips > 0 {
		return 0
	}
	s.skipWaits, s.misses = 0, max(0, s.misses-1)
	return s.budgetMax
}
