package sched

import "golang.org/x/sys/unix"

// promptSlice is the shortest slice that the kernel accepts.
const promptSlice = 100_000 // ns

// SetShortSlice asks the kernel for short scheduler slices for the calling
// thread, to which the goroutine must be locked (sched_setattr(2); Linux 6.12
// and later): beside compute-bound threads it then runs as soon as it wakes.
// Elsewhere it does nothing. The returned function restores the attributes, in
// the same thread, and reports whether they are restored.
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
