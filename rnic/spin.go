package rnic

import "time"

// spinner decides how long a waiter looks before it sleeps: as long as that
// pays. After several sleeps in a row that came too soon it skips the looking,
// and tries again from time to time.
type spinner struct {
	most   int64 // nanoseconds
	misses int   // spins in a row that found nothing
	skip   int   // waits left that do not spin
	hogs   int   // how many did not after the last yield that took long
	hits   int   // since then
}

const (
	spinMisses = 8
	spinSkip   = 32
	hogHits    = 16 // spins that must have found something for a hog to be forgotten by half
)

func (s *spinner) init(d time.Duration) {
	switch {
	case d == 0:
		s.most = int64(DefaultSpin)
	case d > 0:
		s.most = int64(d)
	}
}

// budget is how long to spin now, in nanoseconds.
func (s *spinner) budget() int64 {
	if s.skip > 0 {
		s.skip--
		return 0
	}
	return s.most
}

// hit and miss report how a spin ended.
func (s *spinner) hit() {
	s.misses = 0
	if s.hits++; s.hits >= hogHits {
		s.hits, s.hogs = 0, s.hogs/2
	}
}

func (s *spinner) miss() {
	if s.misses++; s.misses >= spinMisses {
		s.misses = spinMisses / 2
		s.skip = spinSkip
	}
}

// hogged reports that another thread has kept the processor for long. Twice in a row
// it will probably do so again.
func (s *spinner) hogged() {
	s.hogs = min(max(4, 2*s.hogs), 2*spinSkip)
	s.skip, s.hits = s.hogs, 0
}

// woken reports that a sleep that no looking went before was so short that looking would have
// done. It returns how long to look now: as long as ever, unless it was a hog that had the
// processor.
func (s *spinner) woken() int64 {
	if s.hogs > 0 {
		return 0
	}
	s.skip, s.misses = 0, max(0, s.misses-1)
	return s.most
}
