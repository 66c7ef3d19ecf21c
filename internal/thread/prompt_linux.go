package thread

import "golang.org/x/sys/unix"

// promptSlice is the shortest that the kernel knows.
const promptSlice = 100_000 // ns

// Prompt tells the kernel that the calling thread, to which the goroutine must be
// locked, has little to do at a time and should have it done soon: beside threads that
// compute it runs as soon as it wakes, and not when they have had their turn
// (sched_setattr(2); Linux 6.12 and later). Where that cannot be nothing changes.
func Prompt() {
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil || a.Policy != unix.SCHED_NORMAL && a.Policy != unix.SCHED_BATCH {
		return
	}
	a.Runtime = promptSlice
	_ = unix.SchedSetAttr(0, a, 0)
}
