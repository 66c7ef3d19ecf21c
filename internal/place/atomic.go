package place

import "sync/atomic"

// CompareSwap stores swap if the word equals compare, and returns the original
// value. It uses the processor's atomics, so it is atomic with respect to the
// application's. If the word may be inaccessible, call it within Try.
func CompareSwap(word *uint64, compare, swap uint64) (orig uint64) {
	for {
		orig = atomic.LoadUint64(word)
		if orig != compare || atomic.CompareAndSwapUint64(word, compare, swap) {
			return orig
		}
	}
}

// FetchAdd atomically adds add to the word and returns the original value, like
// CompareSwap.
func FetchAdd(word *uint64, add uint64) (orig uint64) {
	return atomic.AddUint64(word, add) - add
}
