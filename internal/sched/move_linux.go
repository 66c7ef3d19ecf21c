package sched

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// MoveThread moves the calling thread, to which the goroutine must be locked, to another of the
// processors on which it may run, and reports whether there is one. It takes some ten
// microseconds. The kernel may move the thread again at any time.
func MoveThread() bool {
	var all unix.CPUSet
	var here uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&here)), 0, 0); errno != 0 || unix.SchedGetaffinity(0, &all) != nil {
		return false
	}
	others := all
	others.Clear(int(here))
	if others.Count() == 0 || unix.SchedSetaffinity(0, &others) != nil {
		return false
	}
	return unix.SchedSetaffinity(0, &all) == nil
}
