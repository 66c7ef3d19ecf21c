package sched

import "golang.org/x/sys/unix"

// promptSlice is the shortest that the kernel knows.
const promptSlice = 100_000 // ns

// SetShortSlice tells the kernel that the calling thread, to which the goroutine must be
// locked, has little to do at a time and should have it done soon: beside threads that
// compute it runs as soon as it wakes, and not when they have had their turn
// (sched_setattr(2); Linux 6.12 and later). Where that cannot be nothing changes. The
// result undoes it, in the same thread, and reports whether the thread is as it was.
func SetShortSlice() (undo func() bool) {
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil || before.Policy != unix.SCHED_NORMAL && before.Policy != unix.SCHED_BATCH {
		return func() bool { return true }
	}
	prompt := *before
	prompt.Runtime = promptSlice
	if unix.SchedSetAttr(0, &prompt, 0) != nil {
		return func() bool { return true }
	}
	return func() bool { return unix.SchedSetAttr(0, before, 0) == nil }
}
