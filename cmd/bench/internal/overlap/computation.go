package overlap

import (
	"runtime"
	"time"
)

// memory is the working set of the computation, which fits into the second-level cache of a
// processor. A computation that used none would not notice that transfers displace it.
var memory [256 << 10 / 8]uint64

// compute executes units of the computation, of some microseconds each.
func compute(units int) {
	const steps, stride = 2048, 8 // a cache line
	x := memory[0] | 1
	for range units {
		for range steps {
			x ^= x << 13 // Marsaglia's xorshift
			x ^= x >> 7
			x ^= x << 17
			memory[x%(uint64(len(memory))/stride)*stride] += x
		}
	}
	memory[0] = x
}

// calibrate returns the processor time of a unit of the computation alone: the median of several
// tries in a thread of its own.
func calibrate() time.Duration {
	const tries, units = 9, 64
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	compute(units)
	took := make([]time.Duration, tries)
	for i := range took {
		before := threadTime()
		compute(units)
		took[i] = threadTime() - before
	}
	return max(1, median(took)/units)
}
