package sdpbench

import "time"

// Work is an amount of computation, in steps that depend on one another.
type Work int

// CalibrateWork is what this machine does in d when nothing disturbs it: as much as in
// the best of some tries, which take some milliseconds. Subjects that are to be
// compared are given the same.
func CalibrateWork(d time.Duration) Work {
	const steps, tries = 1 << 20, 12
	if d <= 0 {
		return 0
	}
	best := time.Duration(1<<63 - 1)
	for range tries {
		start := time.Now()
		Work(steps).execute()
		best = min(best, time.Since(start))
	}
	return Work(float64(d) * steps / float64(max(best, 1)))
}

// forBytes is the share of n bytes of what is done for each KiB.
func (w Work) forBytes(n int) Work { return w * Work(n) / 1024 }

// workResult is what all the work has come to, so that none is left out.
var workResult uint64

// execute does the work.
func (w Work) execute() {
	x := workResult | 1
	for range int(w) {
		x ^= x << 13 // Marsaglia's xorshift
		x ^= x >> 7
		x ^= x << 17
	}
	workResult = x
}
