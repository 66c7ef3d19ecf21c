// Package pages is for large buffers that live long: memory that is not the Go heap's;
// and [CheckAccess] finds out what memory permits.
//
// The garbage collector lets garbage grow as large as what lives, by default. A program with
// hundreds of megabytes of buffers, most of which it never touches, would walk through as
// much new memory before what it uses every day is used again: page faults and cold caches
// instead of memory. Whoever has such buffers takes them from here, and gives them back by
// hand:
//
//	mem, free := pages.Alloc(1 << 20)
//	...
//	free() // and nothing may touch mem any more
package pages
