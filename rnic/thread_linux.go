package rnic

import (
	"syscall"
	"time"
)

// osYield lets another thread run on this processor.
func osYield() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// standby sleeps on the thread itself: a goroutine's timer would wake another
// thread first.
func standby(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil)
}
