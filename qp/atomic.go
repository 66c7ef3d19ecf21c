package qp

import "sync/atomic"

// compareSwap and fetchAdd are done with the processor's atomics, so that they
// are atomic with respect to the application's, too.

func compareSwap(word *uint64, compare, swap uint64) (orig uint64) {
	for {
		orig = atomic.LoadUint64(word)
		if orig != compare || atomic.CompareAndSwapUint64(word, compare, swap) {
			return orig
		}
	}
}

func fetchAdd(word *uint64, add uint64) (orig uint64) {
	return atomic.AddUint64(word, add) - add
}
