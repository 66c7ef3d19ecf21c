package ifwatch_test

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/internal/ifwatch"
)

// A watch that begins with a wrong state reports the right one.
func Example() {
	states := make(chan ifwatch.State, 1)
	w, err := ifwatch.Watch(netip.MustParseAddr("127.0.0.1"), 1, ifwatch.State{}, func(s ifwatch.State) {
		select {
		case states <- s:
		default:
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	fmt.Println("the loopback interface has 127.0.0.1:", (<-states).HasAddr)
	// Output: the loopback interface has 127.0.0.1: true
}
