//go:build !linux

package sched

import "runtime"

// Yield yields to other goroutines, because no portable call yields the thread.
func Yield() { runtime.Gosched() }

// A Slice would set the length of the scheduler slices of a thread.
type Slice struct{}

// OpenSlice returns a Slice that does nothing.
func OpenSlice() *Slice { return nil }

// SetShort does nothing.
func (*Slice) SetShort(bool) {}

// Restore reports true: nothing was changed.
func (*Slice) Restore() bool { return true }

// BoundProcessor reports false: the binding is unknown.
func BoundProcessor() (processor int, ok bool) { return 0, false }

// MoveThread does nothing and reports false.
func MoveThread() bool { return false }
