package sched

import "golang.org/x/sys/unix"

// promptSlice is the shortest slice that the kernel accepts.
const promptSlice = 100_000 // ns

// A Slice sets the length of the scheduler slices of one thread, to which the
// goroutine must be locked (sched_setattr(2); Linux 6.12 and later). It must be
// used in that thread only.
type Slice struct {
	usual, short *unix.SchedAttr // nil where the length cannot be set
	isShort      bool
}

// OpenSlice returns the Slice of the calling thread.
func OpenSlice() *Slice {
	s := &Slice{}
	if usual, err := unix.SchedGetAttr(0, 0); err == nil && (usual.Policy == unix.SCHED_NORMAL || usual.Policy == unix.SCHED_BATCH) {
		short := *usual
		short.Runtime = promptSlice
		s.usual, s.short = usual, &short
	}
	return s
}

// SetShort asks the kernel for short slices, or for the usual ones. A thread with
// short slices runs as soon as it wakes beside compute-bound threads. But a
// thread of usual slices that yields to it waits for many of its short ones, so
// among threads that yield to one another all need the same length. Elsewhere
// SetShort does nothing.
func (s *Slice) SetShort(short bool) {
	if s.usual == nil || s.isShort == short {
		return
	}
	attr := s.usual
	if short {
		attr = s.short
	}
	if unix.SchedSetAttr(0, attr, 0) == nil {
		s.isShort = short
	}
}

// Restore asks for the usual slices, and reports whether the thread has them.
func (s *Slice) Restore() bool {
	s.SetShort(false)
	return !s.isShort
}
