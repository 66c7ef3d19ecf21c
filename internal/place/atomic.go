package place

import "sync/atomic"

// CompareSwap stores swap if the word is compare, and returns what it was: with the
// processor's atomics, so that it is atomic with respect to the application's, too.
// Where the word may not be accessible, it is for Try.
func CompareSwap(word *uint64, compare, swap uint64) (orig uint64) {
	for {
		orig = atomic.LoadUint64(word)
		if orig != compare || atomic.CompareAndSwapUint64(word, compare, swap) {
			return orig
		}
	}
}

// FetchAdd adds to the word in the same manner, and returns what it was.
func FetchAdd(word *uint64, add uint64) (orig uint64) {
	return atomic.AddUint64(word, add) - add
}
