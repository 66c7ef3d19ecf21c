package vtime_test

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/internal/cluster"
	"github.com/softrnic/softrnic/internal/vtime"
)

// A function that waits for a goroutine and a timer, on a simulated host and outside of one.
func Example() {
	wait := func() {
		wake := make(chan string, 1)
		vtime.Go(func() {
			vtime.AfterFunc(time.Millisecond, func() { wake <- "woken" })
		})
		began := vtime.Now()
		vtime.WaitUntil(func() bool { return len(wake) > 0 })
		fmt.Println(<-wake, vtime.OnSimulatedHost(), vtime.Since(began).Truncate(time.Millisecond) >= time.Millisecond)
	}
	wait()
	c := cluster.New(cluster.Options{Hosts: 1})
	err := c.Run(func(*cluster.Host) error {
		wait()
		return nil
	})
	fmt.Println(c.Now(), err)
	// Output:
	// woken false true
	// woken true true
	// 1ms <nil>
}
