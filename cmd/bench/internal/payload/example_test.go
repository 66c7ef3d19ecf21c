package payload_test

import (
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
)

func ExamplePattern_Check() {
	want := payload.New(4)
	received := make([]byte, 4)
	copy(received, want)
	fmt.Println(want.Check(received, false))
	received[2] = 0
	fmt.Println(want.Check(received, false) != nil, want.Check(received, true))
	// Output:
	// <nil>
	// true <nil>
}
