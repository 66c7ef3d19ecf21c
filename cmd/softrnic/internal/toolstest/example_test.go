package toolstest_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
)

// Whoever comes first waits.
func ExampleMeeting() {
	m := toolstest.NewMeeting()
	done := make(chan string)
	go func() {
		m.Stay(0)(context.Background())
		done <- "both were there"
	}()
	m.Stay(1)(context.Background())
	fmt.Println(<-done)
	// Output: both were there
}
