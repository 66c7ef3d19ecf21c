package main

// #include <errno.h>
// #include <stddef.h>
// #include <stdint.h>
import "C"

// go_check_pd returns 0 if the handle is that of a protection domain.
//
//export go_check_pd
func go_check_pd(handle C.uint32_t) C.int {
	defer reportPanic()
	_, errno := domainOf(handle)
	return errno
}

// go_import_mr stores the properties of a region of a protection domain.
//
//export go_import_mr
func go_import_mr(pd, handle C.uint32_t, length *C.size_t, lkey, rkey *C.uint32_t) C.int {
	defer reportPanic()
	d, errno := domainOf(pd)
	if errno != 0 {
		return errno
	}
	r, ok := lookup[*region](handle)
	if !ok {
		return errnoOf(errStale)
	}
	regions.Lock()
	defer regions.Unlock()
	if r.pd != d.PD {
		return C.EINVAL
	}
	*length, *lkey, *rkey = C.size_t(len(r.mem)), C.uint32_t(r.LKey()), C.uint32_t(r.LKey())
	return 0
}
