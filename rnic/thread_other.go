//go:build !linux

package rnic

import (
	"runtime"
	"time"
)

// osYield lets another goroutine run; there is no portable way to yield a
// thread.
func osYield() { runtime.Gosched() }

func standby(d time.Duration) { time.Sleep(d) }
