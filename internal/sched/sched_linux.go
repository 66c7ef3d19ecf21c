package sched

import "golang.org/x/sys/unix"

// Yield lets another thread of this or any process run on this processor
// (sched_yield(2)). It keeps the goroutine's place among those of the Go scheduler:
// runtime.Gosched lets other goroutines run.
func Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
