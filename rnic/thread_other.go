//go:build !linux

package rnic

import "runtime"

// osYield lets another goroutine run; there is no portable way to yield a
// thread.
func osYield() { runtime.Gosched() }
