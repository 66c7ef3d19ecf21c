package qp

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// place copies src over dst, which have the same length, so that a goroutine
// that polls the memory with atomic loads sees the last aligned word last: it
// is stored atomically, after all bytes before it.
func place(dst, src []byte) {
	n := len(src)
	if n == 0 {
		return
	}
	end := uintptr(unsafe.Pointer(unsafe.SliceData(dst))) + uintptr(n)
	switch {
	case end%8 == 0 && n >= 8:
		copy(dst[:n-8], src)
		atomic.StoreUint64((*uint64)(unsafe.Pointer(&dst[n-8])), binary.NativeEndian.Uint64(src[n-8:]))
	case end%4 == 0 && n >= 4:
		copy(dst[:n-4], src)
		atomic.StoreUint32((*uint32)(unsafe.Pointer(&dst[n-4])), binary.NativeEndian.Uint32(src[n-4:]))
	default:
		placeTail(dst, src, int((end-1)%4)+1)
	}
}

// placeTail is place for memory whose end is not aligned: the last word holds
// tail bytes of dst or, if dst is shorter, some bytes before it. Bytes of the
// word that do not belong to dst keep their value even if someone else stores
// to them meanwhile. The word lies in the same allocation, because Go aligns
// those to words.
func placeTail(dst, src []byte, tail int) {
	n := len(src)
	k := min(tail, n) // bytes of dst in the last word
	copy(dst[:n-k], src)
	at := tail - k // where they start in the word
	last := unsafe.Pointer(&dst[n-1])
	word := (*uint32)(unsafe.Add(last, -(tail - 1)))
	for {
		var b [4]byte
		old := atomic.LoadUint32(word)
		binary.NativeEndian.PutUint32(b[:], old)
		copy(b[at:tail], src[n-k:])
		if atomic.CompareAndSwapUint32(word, old, binary.NativeEndian.Uint32(b[:])) {
			return
		}
	}
}

// word64 returns the 8-byte aligned memory b as a word for atomics, or false.
func word64(b []byte) (*uint64, bool) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if len(b) < 8 || uintptr(p)%8 != 0 {
		return nil, false
	}
	return (*uint64)(p), true
}

// putHost stores v in host byte order, as atomics return it to memory.
func putHost(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }
