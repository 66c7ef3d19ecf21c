package sched_test

import (
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/sched"
)

// A goroutine that spins yields to other threads, which may do what it waits for.
func ExampleYield() {
	var done atomic.Bool
	go done.Store(true)
	for !done.Load() {
		sched.Yield()
	}
	fmt.Println("done")
	// Output: done
}
