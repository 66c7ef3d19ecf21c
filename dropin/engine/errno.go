package main

// #include <errno.h>
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/softrnic/softrnic/verbs"
)

// envTrace makes the engine print the error of each call that fails.
const envTrace = "SOFTRNIC_TRACE"

var traceErrors = os.Getenv(envTrace) != ""

// errnoOf returns the errno that rdma-core returns for an error of the verbs.
func errnoOf(err error) C.int {
	if err == nil {
		return 0
	}
	if traceErrors {
		fmt.Fprintf(os.Stderr, "softrnic[%d]: %v\n", os.Getpid(), err)
	}
	var system syscall.Errno
	switch {
	case errors.Is(err, verbs.ErrBusy):
		return C.EBUSY
	case errors.Is(err, verbs.ErrQueueFull), errors.Is(err, verbs.ErrNoMemory):
		return C.ENOMEM
	case errors.Is(err, verbs.ErrUnsupported):
		return C.EOPNOTSUPP
	case errors.Is(err, verbs.ErrFault):
		return C.EFAULT
	case errors.Is(err, verbs.ErrNotConnected):
		return C.ENOTCONN
	case errors.As(err, &system):
		return C.int(system)
	}
	return C.EINVAL
}

// endCall is deferred by functions that read or write memory of the program, with the previous setting for
// faults of the goroutine. If it is not mapped, they return EFAULT. Other panics are reported.
func endCall(errno *C.int, before bool) {
	debug.SetPanicOnFault(before)
	if v := recover(); v != nil {
		if _, fault := v.(interface{ Addr() uintptr }); !fault {
			endByPanic(v)
		}
		*errno = C.EFAULT
	}
}

// reporting is locked for good by the first panic, so that there is one report.
var reporting sync.Mutex

// reportPanic ends the process with a clear text if the calling function panics. A panic cannot
// cross into C.
func reportPanic() {
	if v := recover(); v != nil {
		endByPanic(v)
	}
}

func endByPanic(v any) {
	reporting.Lock()
	fmt.Fprintf(os.Stderr, "softrnic: internal error: %v\n\n%s\nThis is a bug of softrnic, not of the program. "+
		"Please report it with the text above: github.com/softrnic/softrnic\n", v, debug.Stack())
	os.Exit(134)
}
