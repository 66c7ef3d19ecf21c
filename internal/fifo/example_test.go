package fifo_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/fifo"
)

// Elements are popped in the order in which they were pushed.
func Example() {
	var waiting fifo.Queue[string]
	room := 2
	for _, packet := range []string{"first", "second", "third"} {
		waiting.Push(packet)
	}
	for ; room > 0 && waiting.Len() > 0; room-- {
		fmt.Println(waiting.Pop())
	}
	fmt.Println(waiting.Len(), "waits:", *waiting.Front())
	// Output:
	// first
	// second
	// 1 waits: third
}
