package place

import "runtime/debug"

// pageSize is the smallest page of any system, in bytes.
const pageSize = 4096

// Try calls access and reports whether it completed without a page fault: false
// if a page is not mapped, is protected, or lies beyond the end of its file.
// Effects of access before the fault remain. Other panics propagate.
//
// The runtime converts a fault to a panic only in goroutines that request it,
// and otherwise ends the process: see runtime/debug.SetPanicOnFault.
func Try(access func()) (ok bool) {
	defer endTry(debug.SetPanicOnFault(true))
	access()
	return true
}

// endTry is deferred by functions that access registered memory. It restores
// the goroutine's setting and recovers from the panic of a page fault: the
// function then returns its current results.
func endTry(before bool) {
	debug.SetPanicOnFault(before)
	if r := recover(); r != nil {
		if _, fault := r.(interface{ Addr() uintptr }); !fault {
			panic(r)
		}
	}
}

// Load copies src, registered memory, to dst of the same length, and reports
// whether all of src was readable.
func Load(dst, src []byte) (ok bool) {
	defer endTry(debug.SetPanicOnFault(true))
	copy(dst, src)
	return true
}

// Readable reports whether all pages of mem are readable. It reads a byte of
// each.
func Readable(mem []byte) (ok bool) {
	defer endTry(debug.SetPanicOnFault(true))
	touchPages(mem)
	return true
}

// touchPages reads a byte of each page. It is hidden from the race detector
// because the data is not used.
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
