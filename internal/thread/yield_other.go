//go:build !linux

package thread

import "runtime"

// Yield lets another goroutine run: there is no portable way to yield a thread.
func Yield() { runtime.Gosched() }
