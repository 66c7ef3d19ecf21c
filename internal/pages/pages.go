// Package pages allocates large long-lived buffers outside of the Go heap, and
// checks with [CheckAccess] which access memory permits.
//
// By default the garbage collector lets garbage grow as large as the live heap.
// In a program with hundreds of megabytes of buffers, most of them untouched,
// allocation would then pass through as much new memory before any is reused,
// which costs page faults and cache misses. Such buffers are allocated here and
// freed explicitly:
//
//	mem, free := pages.Alloc(1 << 20)
//	...
//	free() // mem must not be used any more
package pages

import (
	"errors"
	"fmt"
	"unsafe"
)

// The reasons of an [AccessError].
var (
	ErrUnmapped    = errors.New("not mapped")
	ErrNotReadable = errors.New("mapped without permission to read")
	ErrNotWritable = errors.New("mapped without permission to write")
	ErrBeyondFile  = errors.New("mapped beyond the end of its file")
)

// An AccessError reports an address that does not permit the requested access.
type AccessError struct {
	Addr uint64
	Err  error // one of the above
}

// Error names the address and the reason.
func (e *AccessError) Error() string { return fmt.Sprintf("the memory at 0x%x is %v", e.Addr, e.Err) }

// Unwrap returns the reason.
func (e *AccessError) Unwrap() error { return e.Err }

// CheckAccess returns an [AccessError] if a page of mem is not mapped, or is
// mapped without permission to read, or with write without permission to
// write; and, of a mapped file, if mem reaches beyond its end. It reads only one
// byte of each such file, so it neither allocates pages nor disturbs the users of
// mem. Its cost grows with the number of mappings that mem crosses, not with
// their size.
//
// On Linux it asks the kernel for the mappings (PROCMAP_QUERY since Linux 6.11,
// before that /proc/self/maps); without /proc it permits everything. On other
// systems it only checks whether the first and the last byte can be read.
func CheckAccess(mem []byte, write bool) error {
	if len(mem) == 0 {
		return nil
	}
	if err := checkAccess(mem, write); err != nil {
		return err
	}
	return nil
}

// addressOf returns the address of the first byte of mem.
func addressOf(mem []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
}

// minMmap is the size in bytes below which a mapping is not worth a system
// call.
const minMmap = 64 << 10

// Alloc returns n zero bytes and a function that frees them. Untouched pages
// take no memory. Small buffers, and those for which mapping fails, are
// allocated on the heap. The caller owns the bytes until it calls free, once;
// free is never nil.
func Alloc(n int) (mem []byte, free func()) {
	if n >= minMmap {
		if mem, free = mapPages(n); mem != nil {
			return mem, free
		}
	}
	return make([]byte, n), func() {}
}
