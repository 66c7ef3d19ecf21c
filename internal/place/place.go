// Package place accesses registered memory that the application reads and writes
// concurrently, as an adapter does: [Copy] stores a peer's write so that its last
// word can be polled, [CompareSwap] and [FetchAdd] are atomic with respect to
// sync/atomic, and [Load] reads such memory.
//
// The application may have unmapped or protected the memory, or truncated the
// file behind it. On a page fault the functions report false instead of ending
// the process.
package place

import (
	"encoding/binary"
	"runtime/debug"
	"sync/atomic"
	"unsafe"
)

// Copy copies src to dst, which have the same length, and accesses no other
// memory. It stores the last aligned word that lies completely in dst
// atomically, after all other bytes, so that a goroutine that polls the word
// with atomic loads sees the complete data when the word has changed. The word
// has 8 bytes if it ends at a multiple of 8, otherwise 4. Bytes after it, at an
// unaligned end, and a dst without a complete word are copied plainly, because
// the rest of their word may be in use by others.
//
// Copy reports whether all of dst and src was accessible, see [Try]. If not,
// part of dst may have been written.
func Copy(dst, src []byte) (ok bool) {
	n := len(src)
	if n == 0 {
		return true
	}
	defer endTry(debug.SetPanicOnFault(true))
	end := uintptr(unsafe.Pointer(unsafe.SliceData(dst))) + uintptr(n)
	if odd := int(end % 4); odd != 0 {
		n = max(0, n-odd)
		copy(dst[n:], src[n:])
		end -= uintptr(odd)
	}
	switch {
	case end%8 == 0 && n >= 8:
		copy(dst[:n-8], src)
		atomic.StoreUint64((*uint64)(unsafe.Pointer(&dst[n-8])), binary.NativeEndian.Uint64(src[n-8:]))
	case n >= 4:
		copy(dst[:n-4], src)
		atomic.StoreUint32((*uint32)(unsafe.Pointer(&dst[n-4])), binary.NativeEndian.Uint32(src[n-4:]))
	default:
		copy(dst[:n], src)
	}
	return true
}

// Word64 returns the 8-byte aligned memory b as a word for atomics. It reports
// false if b is too short or unaligned.
func Word64(b []byte) (*uint64, bool) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if len(b) < 8 || uintptr(p)%8 != 0 {
		return nil, false
	}
	return (*uint64)(p), true
}

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
