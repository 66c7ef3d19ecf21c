package sdpbench

import "time"

// Work is an amount of computation, counted in steps that depend on one another.
type Work int

// CalibrateWork returns the work that this machine does in d without disturbance: that of the
// best of several tries, which take some milliseconds. Targets that are compared must use the
// same value.
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

// forBytes returns the work for n bytes, where w is the work for each KiB.
func (w Work) forBytes(n int) Work { return w * Work(n) / 1024 }

// workResult keeps the result of the work, so that the compiler cannot remove it.
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
