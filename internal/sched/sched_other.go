//go:build !linux

package sched

import "runtime"

// Yield yields to other goroutines, because no portable call yields the thread.
func Yield() { runtime.Gosched() }

// SetShortSlice does nothing, and neither does the function it returns, which
// reports true.
func SetShortSlice() (undo func() bool) { return func() bool { return true } }
