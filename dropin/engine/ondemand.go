package main

/*
#include "engine.h"
*/
import "C"

import (
	"math"
	"runtime/debug"
	"sync"
	"syscall"
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// regions are the regions by local key, for calls that name memory by it.
var regions = regionTable{byKey: make(map[uint32]*region)}

// A regionTable finds regions by key. Its mutex also guards the fields of regions that change.
type regionTable struct {
	sync.Mutex
	byKey map[uint32]*region
}

func (t *regionTable) addRegion(r *region) {
	t.Lock()
	defer t.Unlock()
	t.byKey[r.LKey()] = r
}

// Advice of madvise(2) that populates pages, since Linux 5.14.
const (
	populateRead  = 22
	populateWrite = 23
)

// go_advise_mr prefetches memory of regions with on-demand paging. The errors are those of the mlx5 driver:
// ENOENT for a key that is not registered, EPERM for one of another domain or without the access, EFAULT.
//
//export go_advise_mr
func go_advise_mr(pd C.uint32_t, advice C.int, sges unsafe.Pointer, count C.uint32_t) (errno C.int) {
	defer endCall(&errno, debug.SetPanicOnFault(true))
	d, errno := domainOf(pd)
	if errno != 0 {
		return errno
	}
	list, refused := elements(sges, count, math.MaxInt32)
	if refused != 0 {
		return C.EFAULT
	}
	regions.Lock()
	defer regions.Unlock()
	for _, s := range list {
		r := regions.byKey[s.LKey]
		switch {
		case r == nil:
			return C.ENOENT
		case r.pd != d.PD:
			return C.EPERM
		case advice == C.IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE && r.access&verbs.AccessLocalWrite == 0:
			return C.EPERM
		}
		off, size := s.Addr-r.iova, uint64(len(r.mem))
		if off > size || uint64(s.Length) > size-off {
			return C.EFAULT
		}
		if errno := populatePages(r.mem[off:off+uint64(s.Length)], advice); errno != 0 {
			return errno
		}
	}
	return 0
}

// populatePages makes the pages of mem present. Older kernels cannot: then the first access does.
func populatePages(mem []byte, advice C.int) C.int {
	how := populateRead
	switch advice {
	case C.IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE:
		how = populateWrite
	case C.IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		return 0
	}
	if len(mem) == 0 {
		return 0
	}
	page := uintptr(syscall.Getpagesize())
	first := uintptr(unsafe.Pointer(&mem[0]))
	start := first &^ (page - 1)
	_, _, err := syscall.Syscall(syscall.SYS_MADVISE, start, first+uintptr(len(mem))-start, uintptr(how))
	if err == syscall.EFAULT || err == syscall.ENOMEM {
		return C.EFAULT
	}
	return 0
}
