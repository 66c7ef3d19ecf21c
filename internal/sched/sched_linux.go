package sched

import "golang.org/x/sys/unix"

// Yield lets another thread of any process run on this processor
// (sched_yield(2)). Unlike runtime.Gosched it keeps the goroutine running in
// the Go scheduler.
func Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
