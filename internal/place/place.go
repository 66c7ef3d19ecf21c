package place

import (
	"encoding/binary"
	"runtime/debug"
	"sync/atomic"
	"unsafe"
)

// Copy copies src over dst, which have the same length, and touches nothing
// else. The last aligned word that lies wholly in dst is stored atomically,
// after all other bytes, so that a goroutine that polls that word with atomic
// loads finds everything there once the word has changed: 8 bytes where such
// a word ends at a multiple of 8, otherwise 4. Bytes behind it, of an end that
// is not aligned, and a dst without a whole word are copied plainly: beside
// them in their word there may be memory that is somebody else's.
//
// It reports whether all of dst and src could be accessed, see [Try]. If not, a
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

// Word64 returns the 8-byte aligned memory b as a word for atomics, or false.
func Word64(b []byte) (*uint64, bool) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if len(b) < 8 || uintptr(p)%8 != 0 {
		return nil, false
	}
	return (*uint64)(p), true
}
