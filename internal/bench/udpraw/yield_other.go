//go:build !linux

package udpraw

import "runtime"

// yield lets another goroutine have the core: here nothing spins on a thread of
// its own.
func yield() { runtime.Gosched() }
