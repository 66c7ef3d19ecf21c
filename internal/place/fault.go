package place

import "runtime/debug"

// pageSize is the smallest page of any system, in bytes.
const pageSize = 4096

// Try calls access and reports whether it could touch all memory that it
// wanted: false if a page is not mapped, is protected, or lies beyond the end of
// its file. What access did before the fault stays done. Any other panic goes on.
//
// (The runtime turns a fault into a panic only for a goroutine that
// asked for it, and ends the process otherwise: runtime/debug.SetPanicOnFault.)
func Try(access func()) (ok bool) {
	defer endTry(debug.SetPanicOnFault(true))
	access()
	return true
}

// endTry is deferred by functions that touch memory of others. It restores
// the goroutine's setting and ends the panic of a memory fault: the function
// then returns its results as they are.
func endTry(before bool) {
	debug.SetPanicOnFault(before)
	if r := recover(); r != nil {
		if _, fault := r.(interface{ Addr() uintptr }); !fault {
			panic(r)
		}
	}
}

// Load copies src, the memory of others, to dst, which has the same length, and
// reports whether it could read all of it.
func Load(dst, src []byte) (ok bool) {
	defer endTry(debug.SetPanicOnFault(true))
	copy(dst, src)
	return true
}

// Readable reports whether all pages of mem can be read, by reading a byte of each.
func Readable(mem []byte) (ok bool) {
	defer endTry(debug.SetPanicOnFault(true))
	touchPages(mem)
	return true
}

// touchPages reads a byte of each page. The race detector does not see it: no
// use is made of what was read.
//
//go:noinline
//go:norace
func touchPages(mem []byte) (sum byte) {
	for at := 0; at < len(mem); at += pageSize {
		sum ^= mem[at]
	}
	if len(mem) > 0 {
		sum ^= mem[len(mem)-1]
	}
	return sum
}
