package toolstest_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
)

// The side that arrives first waits for the other.
func ExampleBarrier() {
	m := toolstest.NewBarrier()
	done := make(chan string)
	go func() {
		m.Wait(0)(context.Background())
		done <- "both were there"
	}()
	m.Wait(1)(context.Background())
	fmt.Println(<-done)
	// Output: both were there
}
