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
